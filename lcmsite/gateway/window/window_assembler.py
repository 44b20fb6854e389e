"""Shorten requests to fit their window; reuse a cut for as long as it fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from conversations.store.injected import wrapped
from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.choosing_cut import choose_cut
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.request_entries import parse_entries
from lcmsite.gateway.window.results import ResultShortener
from lcmsite.gateway.window.shortening import Parts, parts_of, shorten
from lcmsite.gateway.window.stored_memory import StoredMemory
from lcmsite.gateway.window.summary_block import SummaryBlock, build_block, uncovered_ranges
from lcmsite.gateway.window.types import Assembled, Cut, Kind, ShownSummary, StoredCut, Untouched, WindowRequest
from lcmsite.gateway.window.unfolding import unfold_lookups

# The tokens reserved for the answer: as many as the request allows, at most 1/5 of the window; 1/10 without a limit.
_ANSWER_PART = 5
_UNKNOWN_ANSWER_PART = 10
# The tokens of marks and framing around the text of a block.
_FRAME_TOKENS = 72


def limit_of(window: int, answer_tokens: int | None) -> int:
    """Return how many tokens of a window the request may use."""
    if answer_tokens is None:
        return window - window // _UNKNOWN_ANSWER_PART
    return window - min(max(answer_tokens, 0), window // _ANSWER_PART)


@dataclass(frozen=True)
class WindowAssembler:
    """Shortens requests of one conversation that are over their window.

    A trial stores nothing and compacts nothing.
    """

    conversation_id: int
    memory: StoredMemory
    counter: RequestCounter
    window: int
    is_trial: bool = False

    def assemble(
        self,
        *,
        surface: Surface,
        body: bytes,
        seqs: Sequence[int | None],
        reserved_tokens: int = 0,
        offered_body: bytes | None = None,
    ) -> Assembled:
        """Shorten a request that exceeds the window; `seqs` are those of its entries.

        `offered_body` is the request with LCM's tools, to be shortened in place of `body`: earlier lookups of the model
        are put back, and `reserved_tokens` are kept for new ones.
        """
        counter = self.counter
        original = parse_entries(surface, body, counter=counter, seqs=seqs)
        if isinstance(original, Untouched):
            return Assembled(self.window, untouched=original)
        request = original if offered_body is None else parse_entries(surface, offered_body, counter=counter, seqs=seqs)
        assert isinstance(request, WindowRequest)
        limit = limit_of(self.window, request.answer_tokens) - reserved_tokens
        if request.tokens <= limit:
            return Assembled(self.window, original.tokens, untouched=Untouched.FITS)
        if any(entry.seq is None for entry in request.entries if entry.kind is not Kind.SYSTEM):
            return Assembled(self.window, original.tokens, untouched=Untouched.NOT_STORED)
        if offered_body is not None:
            request = unfold_lookups(request, self.memory.read_lookups(), counter=counter)
        reused = (self._reuse_cut(request, stored, limit) for stored in self.memory.stored_cuts(self.window))
        shortened = next(filter(None, reused), None) or self._make_cut(request, limit)
        return replace(shortened, tokens_in=original.tokens)

    def _reuse_cut(self, request: WindowRequest, stored: StoredCut, limit: int) -> Assembled | None:
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
        assembled = self._build_shorter(request, parts, block, is_new_cut=is_renewed)
        if assembled.tokens_out > limit:
            return None
        if is_renewed and not self.is_trial:
            self.memory.store_cut(stored)
        return assembled

    def _make_cut(self, request: WindowRequest, limit: int) -> Assembled:
        """Shorten the request by a new cut; compact first if summaries are missing."""
        chosen = choose_cut(request, limit=limit, shorten_entry=self._result_shortener.shorten_entry)
        parts = self._divide(request, chosen.cut)
        assert parts is not None
        seqs = parts.seqs_left_out
        summaries = self.memory.active_summaries()
        if seqs and not self.is_trial and uncovered_ranges(seqs, summaries):
            self.memory.compact()
            summaries = self.memory.active_summaries()
        block = self._build_block(parts, summaries, chosen.summary_tokens)
        assembled = self._build_shorter(request, parts, block, is_new_cut=True)
        if not self.is_trial:
            last_seq = max(seqs, default=chosen.cut.made_at_seq)
            self.memory.store_cut(
                StoredCut(chosen.cut, self.window, assembled.summary_ids, chosen.summary_tokens, last_seq)
            )
        return replace(assembled, is_over=assembled.tokens_out > limit)

    def _divide(self, request: WindowRequest, cut: Cut) -> Parts | None:
        """Divide the request by a cut; None if the cut belongs to another history."""
        return parts_of(request, cut, shorten_entry=self._result_shortener.shorten_entry, counter=self.counter)

    def _build_block(self, parts: Parts, summaries: Sequence[ShownSummary], most_tokens: int) -> SummaryBlock | None:
        """Build the block of summaries for what is left out; None if nothing is."""
        if not parts.left_out:
            return None
        return build_block(
            conversation_id=self.conversation_id,
            seqs=parts.seqs_left_out,
            system_seqs=[entry.seq for entry in parts.system_left_out if entry.seq is not None],
            summaries=summaries,
            most_tokens=most_tokens - _FRAME_TOKENS,
            count_tokens=self.counter.tokens,
        )

    def _build_shorter(
        self, request: WindowRequest, parts: Parts, block: SummaryBlock | None, *, is_new_cut: bool
    ) -> Assembled:
        """Build the shorter request of its parts and the block."""
        # The mark keeps the text from being stored when it comes back.
        text = None if block is None else wrapped(block.text)
        return Assembled(
            window=self.window,
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
