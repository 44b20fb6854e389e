"""Shorten requests to fit their window; reuse a cut for as long as it fits.

The decisions are here; stored data is read and written through `WindowMemory`, implemented in `stored_memory.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from conversations.store.injected import wrapped
from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.choosing_cut import choose_cut
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.request_entries import parse_entries
from lcmsite.gateway.window.results import ResultShortener
from lcmsite.gateway.window.shortening import Parts, parts_of, shorten
from lcmsite.gateway.window.summary_block import SummaryBlock, build_block, uncovered_ranges
from lcmsite.gateway.window.types import (
    Assembled,
    Cut,
    Kind,
    ShownSummary,
    StoredCut,
    Untouched,
    WindowRequest,
)
from lcmsite.gateway.window.unfolding import StoredLookups, unfold_lookups

# The tokens reserved for the answer: as many as the request allows, at most 1/5 of the window; 1/10 without a limit.
_ANSWER_PART = 5
_UNKNOWN_ANSWER_PART = 10
# The tokens of marks and framing around the text of a block.
_FRAME_TOKENS = 72


class WindowMemory(Protocol):
    """The stored data of a conversation: cuts, summaries, lookups."""

    def stored_cuts(self, window: int) -> Iterable[StoredCut]:
        """The cuts made for this window, the newest first."""

    def store_cut(self, stored: StoredCut) -> None:
        """Store a cut for later requests."""

    def active_summaries(self) -> Sequence[ShownSummary]:
        """The summaries in the active context, in order."""

    def find_summaries(self, summary_ids: Sequence[str]) -> Sequence[ShownSummary]:
        """These summaries, without quarantined ones."""

    def compact(self) -> None:
        """Compact the conversation; returns after a bounded time in any case."""

    def read_lookups(self) -> StoredLookups:
        """Return the newest lookups, by the seq of the answer that the agent got."""


def limit_of(window: int, answer_tokens: int | None) -> int:
    """Return how many tokens of a window the request may use."""
    if answer_tokens is None:
        return window - window // _UNKNOWN_ANSWER_PART
    return window - min(max(answer_tokens, 0), window // _ANSWER_PART)


@dataclass(frozen=True)
class WindowAssembler:
    """Shortens requests of one conversation that are over their window."""

    conversation_id: int
    memory: WindowMemory
    counter: RequestCounter

    def assemble(
        self,
        *,
        surface: Surface,
        body: bytes,
        seqs: Sequence[int | None],
        window: int,
        is_trial: bool = False,
        reserved_tokens: int = 0,
        offered_body: bytes | None = None,
    ) -> Assembled:
        """Shorten a request that exceeds its window; `seqs` are those of its entries.

        A trial stores nothing and compacts nothing. `offered_body` is the request with LCM's tools, to be shortened
        in place of `body`: earlier lookups of the model are put back, and `reserved_tokens` are kept for new ones.
        """
        counter = self.counter
        original = parse_entries(surface, body, counter=counter, seqs=seqs)
        if isinstance(original, Untouched):
            return Assembled(window, untouched=original)
        request = original if offered_body is None else parse_entries(surface, offered_body, counter=counter, seqs=seqs)
        assert isinstance(request, WindowRequest)
        limit = limit_of(window, request.answer_tokens) - reserved_tokens
        if request.tokens <= limit:
            return Assembled(window, original.tokens, untouched=Untouched.FITS)
        if any(entry.seq is None for entry in request.entries if entry.kind is not Kind.SYSTEM):
            return Assembled(window, original.tokens, untouched=Untouched.NOT_STORED)
        if offered_body is not None:
            request = unfold_lookups(request, self.memory.read_lookups(), counter=counter)
        shortened = self._shorten(request, window=window, limit=limit, is_trial=is_trial)
        return replace(shortened, tokens_in=original.tokens)

    def _shorten(self, request: WindowRequest, *, window: int, limit: int, is_trial: bool) -> Assembled:
        """Shorten the request by the newest stored cut that fits, or by a new one."""
        for stored in self.memory.stored_cuts(window):
            reused = self._reuse_cut(request, stored, limit=limit, is_trial=is_trial)
            if reused is not None:
                return reused
        return self._make_cut(request, window=window, limit=limit, is_trial=is_trial)

    def _reuse_cut(self, request: WindowRequest, stored: StoredCut, *, limit: int, is_trial: bool) -> Assembled | None:
        """Shorten the request by a stored cut; None if the cut does not apply or fit."""
        parts = self._divide(request, stored.cut)
        if parts is None:
            return None
        is_renewed = False
        block = self._build_block(parts, self.memory.find_summaries(stored.summary_ids), stored.summary_tokens)
        if block is not None and block.uncovered:
            newer_block = self._build_block(parts, self.memory.active_summaries(), stored.summary_tokens)
            # A compaction that ended too late for the cut may have added summaries since.
            if newer_block is not None and _count_uncovered(newer_block) < _count_uncovered(block):
                is_renewed, block = True, newer_block
                stored = replace(stored, cut=_made_now(stored.cut, request), summary_ids=block.summary_ids)
                parts = self._divide(request, stored.cut)
                assert parts is not None
        assembled = self._build_shorter(request, parts, block, window=stored.window, is_new_cut=is_renewed)
        if assembled.tokens_out > limit:
            return None
        if is_renewed and not is_trial:
            self.memory.store_cut(stored)
        return assembled

    def _make_cut(self, request: WindowRequest, *, window: int, limit: int, is_trial: bool) -> Assembled:
        """Shorten the request by a new cut; compact first if summaries are missing."""
        chosen = choose_cut(request, limit=limit, shorten_entry=self._result_shortener.shorten_entry)
        parts = self._divide(request, chosen.cut)
        assert parts is not None
        seqs = parts.seqs_left_out
        summaries = self.memory.active_summaries()
        if seqs and not is_trial and uncovered_ranges(seqs, summaries):
            self.memory.compact()
            summaries = self.memory.active_summaries()
        block = self._build_block(parts, summaries, chosen.summary_tokens)
        assembled = self._build_shorter(request, parts, block, window=window, is_new_cut=True)
        if not is_trial:
            self.memory.store_cut(
                StoredCut(
                    cut=chosen.cut,
                    window=window,
                    summary_ids=assembled.summary_ids,
                    summary_tokens=chosen.summary_tokens,
                    last_seq=max(seqs, default=chosen.cut.made_at_seq),
                )
            )
        return replace(assembled, is_over=assembled.tokens_out > limit)

    def _divide(self, request: WindowRequest, cut: Cut) -> Parts | None:
        """Divide the request by a cut; None if the cut belongs to another history."""
        return parts_of(request, cut, shorten_entry=self._result_shortener.shorten_entry, counter=self.counter)

    def _build_block(self, parts: Parts, summaries: Sequence[ShownSummary], most_tokens: int) -> SummaryBlock | None:
        """Build the block of summaries for what is left out; None if nothing is."""
        if not parts.seqs_left_out:
            return None
        return build_block(
            conversation_id=self.conversation_id,
            seqs=parts.seqs_left_out,
            summaries=summaries,
            most_tokens=most_tokens - _FRAME_TOKENS,
            count_tokens=self.counter.tokens,
        )

    def _build_shorter(
        self, request: WindowRequest, parts: Parts, block: SummaryBlock | None, *, window: int, is_new_cut: bool
    ) -> Assembled:
        """Build the shorter request of its parts and the block."""
        # The mark keeps the text from being stored when it comes back.
        text = None if block is None else wrapped(block.text)
        return Assembled(
            window=window,
            shorter=shorten(request, parts, block=text, counter=self.counter),
            summary_ids=() if block is None else block.summary_ids,
            is_new_cut=is_new_cut,
        )

    @cached_property
    def _result_shortener(self) -> ResultShortener:
        return ResultShortener(self.counter, self.conversation_id)


def _count_uncovered(block: SummaryBlock) -> int:
    return sum(seq_range.last - seq_range.first + 1 for seq_range in block.uncovered)


def _made_now(cut: Cut, request: WindowRequest) -> Cut:
    return replace(cut, made_at_seq=max((entry.seq or 0 for entry in request.entries), default=0))
