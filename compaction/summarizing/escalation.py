"""Try the levels in turn until a text is accepted; the last cannot fail."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from compaction.llm.types import CallOutcome, ModelFailed, Withheld
from compaction.summarizing.output_checks import Refusal, Rejected
from compaction.summarizing.retention_score import retention
from compaction.summarizing.summarizer import Summarizer, SummaryDraft, SummaryRequest
from conversations.content.lossless_values import storable
from conversations.types import Level

# Failures that are about this request: the model was there, and had no answer to it.
_NO_ANSWER_TO_THIS = frozenset({CallOutcome.BAD_ANSWER, CallOutcome.CONTEXT_LENGTH, CallOutcome.REFUSED})


class Lack(StrEnum):
    """Why a summary was made without the model that should have made it."""

    # No model was there.
    UNAVAILABLE = "unavailable"
    # A model was, and had no answer to this request.
    UNANSWERED = "unanswered"
    # There were answers, and none was accepted.
    REJECTED = "rejected"

    @property
    def may_pass(self) -> bool:
        """Whether a later call may help; a rejected text would only cost again."""
        return self is not Lack.REJECTED


@dataclass(frozen=True)
class Accepted:
    """An accepted text, its cost and level, and the failures before it."""

    draft: SummaryDraft
    level: Level
    tokens: int
    retention: float | None
    duration_ms: int
    # Set where a model should have made this text: it should be made again.
    lack: Lack | None = None
    # Each failed attempt: the summarizer, the level, and the reason in one word.
    failures: tuple[str, ...] = ()

    def quality(self, *, degraded_sources: Sequence[object], sources_wait: bool) -> dict[str, object]:
        """What is known of how good the text is, and why it is no better."""
        quality: dict[str, object] = {"kept": self.draft.quality, "left_out": self.draft.left_out}
        if self.lack is not None:
            quality["lack"] = self.lack.value
        if self.failures:
            quality["failures"] = list(self.failures)
        if degraded_sources:
            quality["degraded_sources"] = list(degraded_sources)
        if sources_wait or (self.lack is not None and self.lack.may_pass):
            # A model may make it, or one of its sources, another time.
            quality["waits"] = True
        return quality


class _Failure(NamedTuple):
    """An attempt that came to nothing."""

    summarizer: str
    level: Level
    reason: CallOutcome | Withheld | Refusal

    def __str__(self) -> str:
        return f"{self.summarizer} {self.level.value}: {self.reason.value}"


@dataclass(frozen=True)
class Escalation:
    """Normal, aggressive, deterministic.

    At each level the summarizers of the chain are called in order, until one answers. A text that is not accepted leads
    to the next level. `models` names those that call a language model.
    """

    chain: tuple[Summarizer, ...]
    last_resort: Summarizer
    count_tokens: Callable[[str], int]
    models: frozenset[str] = frozenset()

    def summarize(self, request: SummaryRequest) -> Accepted | None:
        """The first acceptable text: shorter than its sources, not far over target.

        The deterministic level ends below its target on any source, so None means that the sources are no longer
        than a summary of them could be.
        """
        started = time.monotonic()
        failures: list[_Failure] = []
        # Summarizers count the same texts again and again.
        request = replace(request, count_tokens=cache(self.count_tokens))
        for level, target, summarizers in (
            (Level.NORMAL, request.target_tokens, self.chain),
            (Level.AGGRESSIVE, max(1, request.target_tokens // 2), self.chain),
            (Level.DETERMINISTIC, request.target_tokens, (self.last_resort,)),
        ):
            if level is Level.AGGRESSIVE and not any(isinstance(each.reason, Refusal) for each in failures):
                # No summarizer of the chain was available a moment ago.
                continue
            at_level = replace(request, level=level, target_tokens=target, most_tokens=request.acceptable_tokens)
            for summarizer in summarizers:
                try:
                    draft = summarizer.summarize(at_level)
                    draft = replace(draft, text=storable(draft.text))
                    tokens = _require_acceptable(draft.text, request)
                except ModelFailed as failure:
                    failures.append(_Failure(summarizer.name, level, failure.reason))
                    continue
                except Rejected as rejected:
                    failures.append(_Failure(summarizer.name, level, rejected.reason))
                    break
                return Accepted(
                    draft=draft,
                    level=level,
                    tokens=tokens,
                    retention=retention((source.text for source in request.sources), draft.text),
                    duration_ms=int(1000 * (time.monotonic() - started)),
                    lack=self._lack(summarizer, failures),
                    failures=tuple(map(str, failures)),
                )
        return None

    def _lack(self, maker: Summarizer, failures: Sequence[_Failure]) -> Lack | None:
        if not self.models or maker.name in self.models:
            return None
        reasons = {each.reason for each in failures if each.summarizer in self.models}
        if not reasons.isdisjoint(Refusal):
            return Lack.REJECTED
        return Lack.UNAVAILABLE if reasons.isdisjoint(_NO_ANSWER_TO_THIS) else Lack.UNANSWERED


def _require_acceptable(text: str, request: SummaryRequest) -> int:
    """The tokens of a text; Rejected if it is empty or too long."""
    if not text.strip():
        raise Rejected(Refusal.EMPTY)
    tokens = request.count_tokens(text)
    # It must be shorter than its sources, which are counted no farther than needed.
    sources = accumulate(request.count_tokens(source.text) for source in request.sources)
    if tokens > request.acceptable_tokens or not any(total > tokens for total in sources):
        raise Rejected(Refusal.TOO_LONG)
    return tokens
