"""Put a shorter request together from a cut and summaries. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lcmsite.gateway.window.choosing_cut import ChosenCut, choose_cut
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.results import ResultShortener
from lcmsite.gateway.window.shortening import Parts, parts_of, shorten
from lcmsite.gateway.window.summary_block import SeqRange, SummaryBlock, build_block, pointer_to
from lcmsite.gateway.window.types import Cut, Shortened, ShownSummary, WindowRequest

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
class RequestShortener:
    """Shortens the requests of one conversation."""

    conversation_id: int
    counter: RequestCounter
    # Marks a text as LCM's, so that it is not stored when it comes back.
    marked: Callable[[str], str] = field(repr=False)

    @cached_property
    def result_shortener(self) -> ResultShortener:
        return ResultShortener(
            self.counter, pointer_of_seq=lambda seq: self.marked(pointer_to(self.conversation_id, SeqRange(seq, seq)))
        )

    def choose_cut(self, request: WindowRequest, *, limit: int) -> ChosenCut:
        """Choose the cut for a request over the limit."""
        return choose_cut(request, limit=limit, shorten_entry=self.result_shortener.shorten_entry)

    def divide(self, request: WindowRequest, cut: Cut) -> Parts | None:
        """Divide the request by a cut; None if the cut belongs to another history."""
        return parts_of(request, cut, shorten_entry=self.result_shortener.shorten_entry, counter=self.counter)

    def build_block(self, parts: Parts, summaries: Sequence[ShownSummary], *, most_tokens: int) -> SummaryBlock | None:
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

    def build_shorter(self, request: WindowRequest, parts: Parts, block: SummaryBlock | None) -> Shortened:
        """Build the shorter request of its parts and the block."""
        text = None if block is None else self.marked(block.text)
        return shorten(request, parts, block=text, counter=self.counter)
