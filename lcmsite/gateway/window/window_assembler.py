"""Shorten requests to fit their window, by the same cut for as long as it fits.

The decisions are here; stored data is behind the protocol `WindowMemory`, implemented in `stored_memory.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.assembling import Assembling, limit_of
from lcmsite.gateway.window.request_entries import read_request
from lcmsite.gateway.window.shortening import Parts
from lcmsite.gateway.window.summary_block import SummaryBlock, uncovered_ranges
from lcmsite.gateway.window.types import (
    Assembled,
    Cut,
    KeptCut,
    Kind,
    ShownSummary,
    Untouched,
    WindowRequest,
)
from lcmsite.gateway.window.unfolding import LookedUp, unfolded


class WindowMemory(Protocol):
    """What is stored of a conversation: cuts, summaries, lookups."""

    def kept(self, window: int) -> Iterable[KeptCut]:
        """The cuts made for this window, the newest first."""

    def keep(self, kept: KeptCut) -> None:
        """Store a cut for later requests."""

    def active(self) -> Sequence[ShownSummary]:
        """The summaries in the active context, in order."""

    def summaries(self, summary_ids: Sequence[str]) -> Sequence[ShownSummary]:
        """These summaries, without quarantined ones."""

    def compact(self) -> None:
        """Compact the conversation; returns after a bounded time in any case."""

    def looked_up(self) -> LookedUp:
        """Return the newest lookups, by the seq of the answer that the agent got."""


@dataclass(frozen=True)
class WindowAssembler:
    """Shortens requests that are over their window."""

    assembling: Assembling
    memory: WindowMemory

    def assemble(
        self,
        *,
        surface: Surface,
        body: bytes,
        seqs: Sequence[int | None],
        window: int,
        is_trial: bool = False,
        kept_free: int = 0,
        offered: bytes | None = None,
    ) -> Assembled:
        """Shorten a request that exceeds its window; `seqs` are those of its entries.

        A trial stores nothing and compacts nothing. `offered` is the request with LCM's tools, to be shortened in place
        of `body`: earlier lookups of the model are put back, and `kept_free` tokens are reserved for new ones.
        """
        counter = self.assembling.counter
        came = read_request(surface, body, counter=counter, seqs=seqs)
        if isinstance(came, Untouched):
            return Assembled(window, untouched=came)
        request = came if offered is None else read_request(surface, offered, counter=counter, seqs=seqs)
        assert isinstance(request, WindowRequest)
        limit = limit_of(window, request.answer_tokens) - kept_free
        if request.tokens <= limit:
            return Assembled(window, came.tokens, untouched=Untouched.FITS)
        if any(entry.seq is None for entry in request.entries if entry.kind is not Kind.SYSTEM):
            return Assembled(window, came.tokens, untouched=Untouched.NOT_STORED)
        if offered is not None:
            request = unfolded(request, self.memory.looked_up(), counter=counter)
        shortened = self._shortened(request, window=window, limit=limit, is_trial=is_trial)
        return replace(shortened, tokens_in=came.tokens)

    def _shortened(self, request: WindowRequest, *, window: int, limit: int, is_trial: bool) -> Assembled:
        """Shorten the request by the newest stored cut that fits, or by a new one."""
        for kept in self.memory.kept(window):
            again = self._again(request, kept, limit=limit, is_trial=is_trial)
            if again is not None:
                return again
        return self._anew(request, window=window, limit=limit, is_trial=is_trial)

    def _again(self, request: WindowRequest, kept: KeptCut, *, limit: int, is_trial: bool) -> Assembled | None:
        """Shorten the request by a stored cut; None if it does not apply or suffice."""
        parts = self.assembling.parts(request, kept.cut)
        if parts is None:
            return None
        block = self._block(parts, self.memory.summaries(kept.summary_ids), kept.summary_tokens)
        if block is not None and block.uncovered:
            newer = self._block(parts, self.memory.active(), kept.summary_tokens)
            # A compaction that ended too late for the cut has added summaries since.
            if newer is not None and _uncovered(newer) < _uncovered(block):
                renewed = replace(kept, cut=_as_of_now(kept.cut, request), summary_ids=newer.summary_ids)
                return self._done(request, newer, renewed, limit=limit, is_kept=is_trial, is_new=True)
        return self._done(request, block, kept, limit=limit, is_kept=True, is_new=False)

    def _anew(self, request: WindowRequest, *, window: int, limit: int, is_trial: bool) -> Assembled:
        """Shorten the request by a new cut; compact first if summaries are missing."""
        chosen = self.assembling.chosen(request, limit=limit)
        parts = self.assembling.parts(request, chosen.cut)
        assert parts is not None
        seqs = parts.seqs_left_out
        summaries = self.memory.active()
        if seqs and not is_trial and uncovered_ranges(seqs, summaries):
            self.memory.compact()
            summaries = self.memory.active()
        block = self._block(parts, summaries, chosen.summary_tokens)
        kept = KeptCut(
            cut=chosen.cut,
            window=window,
            summary_ids=() if block is None else block.summary_ids,
            summary_tokens=chosen.summary_tokens,
            last_seq=max(seqs, default=chosen.cut.newest_seq),
        )
        done = self._done(request, block, kept, limit=None, is_kept=is_trial, is_new=True)
        assert done is not None
        return replace(done, is_over=done.tokens_out > limit)

    def _done(
        self,
        request: WindowRequest,
        block: SummaryBlock | None,
        kept: KeptCut,
        *,
        limit: int | None,
        is_kept: bool,
        is_new: bool,
    ) -> Assembled | None:
        """Build the shorter request; store its cut unless `is_kept`. None if over limit."""
        parts = self.assembling.parts(request, kept.cut)
        assert parts is not None
        shorter = self.assembling.shorter(request, parts, block)
        if limit is not None and shorter.tokens > limit:
            return None
        if not is_kept:
            self.memory.keep(kept)
        return Assembled(
            window=kept.window,
            tokens_in=request.tokens,
            shorter=shorter,
            summary_ids=() if block is None else block.summary_ids,
            is_new_cut=is_new,
        )

    def _block(self, parts: Parts, summaries: Sequence[ShownSummary], most_tokens: int) -> SummaryBlock | None:
        return self.assembling.block(parts, summaries, most_tokens=most_tokens)


def _uncovered(block: SummaryBlock) -> int:
    return sum(place.last - place.first + 1 for place in block.uncovered)


def _as_of_now(cut: Cut, request: WindowRequest) -> Cut:
    return replace(cut, newest_seq=max((entry.seq or 0 for entry in request.entries), default=0))
