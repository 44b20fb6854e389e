"""From a chunk to an accepted text: the levels are tried in turn, and the last one cannot fail. No database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

from compaction.summarizers.base import Source, Summarizer, SummaryDraft, SummaryRequest
from conversations.types import Level

# An accepted text may overshoot its target by this much; a model counts less well than we do.
OVERSHOOT = 3


@dataclass(frozen=True)
class Accepted:
    """A text that was accepted, what it costs, and how hard it had to be pressed for."""

    draft: SummaryDraft
    level: Level
    tokens: int


@dataclass(frozen=True)
class Escalation:
    """Normal, aggressive, deterministic."""

    summarizer: Summarizer
    last_resort: Summarizer
    count_tokens: Callable[[str], int]

    def summarize(self, *, sources: tuple[Source, ...], target_tokens: int, depth: int) -> Accepted | None:
        """The first text that is shorter than its sources and at most three times the target; None if there is none.

        The deterministic level ends below its target on any source, so None means that the sources are no longer
        than a summary of them could be.
        """
        attempts = (
            (Level.NORMAL, self.summarizer, target_tokens),
            (Level.AGGRESSIVE, self.summarizer, max(1, target_tokens // 2)),
            (Level.DETERMINISTIC, self.last_resort, target_tokens),
        )
        for level, summarizer, target in attempts:
            draft = summarizer.summarize(
                SummaryRequest(
                    sources=sources, target_tokens=target, count_tokens=self.count_tokens, depth=depth, level=level
                )
            )
            tokens = self.count_tokens(draft.text)
            if draft.text.strip() and tokens <= OVERSHOOT * target_tokens and self._is_less(tokens, sources):
                return Accepted(draft=draft, level=level, tokens=tokens)
        return None

    def _is_less(self, tokens: int, sources: tuple[Source, ...]) -> bool:
        """Whether the sources have more tokens than so many; they are counted no farther than it takes to know."""
        return any(total > tokens for total in accumulate(self.count_tokens(source.text) for source in sources))
