"""Put a shorter request together from a cut and summaries. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lcmsite.gateway.window.choosing_cut import ChosenCut, choose_cut
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.results import ResultShortener
from lcmsite.gateway.window.shortening import Parts, parts_of, shorten
from lcmsite.gateway.window.summary_block import SeqRange, SummaryBlock, pointer_to, summary_block
from lcmsite.gateway.window.types import Cut, Shortened, ShownSummary, WindowRequest

# Of the window, what the answer gets: as much as the request says, within bounds.
_ANSWER_PART = 5
_UNKNOWN_ANSWER_PART = 10
# What marks and framing cost beside the block's own words.
_FRAME_TOKENS = 72


def limit_of(window: int, answer_tokens: int | None) -> int:
    """The tokens of a window that a request may have."""
    if answer_tokens is None:
        return window - window // _UNKNOWN_ANSWER_PART
    return window - min(max(answer_tokens, 0), window // _ANSWER_PART)


@dataclass(frozen=True)
class Assembling:
    """Shortens the requests of one conversation."""

    conversation_id: int
    counter: RequestCounter
    # Marks a text, so that it is not stored when it comes back.
    marked: Callable[[str], str] = field(repr=False)

    @cached_property
    def results(self) -> ResultShortener:
        return ResultShortener(
            self.counter, pointer=lambda seq: self.marked(pointer_to(self.conversation_id, SeqRange(seq, seq)))
        )

    def chosen(self, request: WindowRequest, *, limit: int) -> ChosenCut:
        """The cut for a request that is over the limit."""
        return choose_cut(request, limit=limit, shortened=self.results.shortened)

    def parts(self, request: WindowRequest, cut: Cut) -> Parts | None:
        """What the cut makes of the request; None if it is of another history."""
        return parts_of(request, cut, shortened=self.results.shortened, counter=self.counter)

    def block(self, parts: Parts, summaries: Sequence[ShownSummary], *, most_tokens: int) -> SummaryBlock | None:
        """The block for what was left out; None if nothing was."""
        if not parts.seqs_left_out:
            return None
        return summary_block(
            conversation_id=self.conversation_id,
            seqs=parts.seqs_left_out,
            summaries=summaries,
            most_tokens=most_tokens - _FRAME_TOKENS,
            count=self.counter.tokens,
        )

    def shorter(self, request: WindowRequest, parts: Parts, block: SummaryBlock | None) -> Shortened:
        """The shorter request."""
        text = None if block is None else self.marked(block.text)
        return shorten(request, parts, block=text, counter=self.counter)
