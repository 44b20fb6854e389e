"""Try the levels in turn until a text is accepted; the last level cannot fail."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from compaction.llm.types import CallOutcome, ModelFailed, NotCalled
from compaction.summarizing.output_checks import Refusal, Rejected
from compaction.summarizing.retention_score import retention
from compaction.summarizing.summarizer import Summarizer, SummaryDraft, SummaryRequest
from conversations.content.lossless_values import storable
from conversations.types import Level

# Failures caused by this request: the model was available, but had no answer to it.
_UNANSWERED = frozenset({CallOutcome.BAD_ANSWER, CallOutcome.CONTEXT_LENGTH, CallOutcome.REFUSED})


class Lack(StrEnum):
    """Why a summary was made without the model that should have made it."""

    # No model was available.
    UNAVAILABLE = "unavailable"
    # A model was available, but had no answer to this request.
    UNANSWERED = "unanswered"
    # A model answered, but no answer was accepted.
    REJECTED = "rejected"

    @property
    def may_pass(self) -> bool:
        """Whether a later call may succeed; a rejected text would be rejected again."""
        return self is not Lack.REJECTED


@dataclass(frozen=True)
class Accepted:
    """An accepted text, its cost and level, and the failures before it."""

    draft: SummaryDraft
    level: Level
    tokens: int
    retention: float | None
    duration_ms: int
    # Set if a model should have made this text, so that the summary is degraded.
    lack: Lack | None = None
    # Each failed attempt: the summarizer, the level, and the reason in one word.
    failures: tuple[str, ...] = ()

    def quality(self, *, degraded_sources: Sequence[object], sources_wait: bool) -> dict[str, object]:
        """Build the summary's `quality`: facts kept, failures, and degraded sources."""
        quality: dict[str, object] = {"kept": self.draft.quality, "left_out": self.draft.left_out}
        if self.lack is not None:
            quality["lack"] = self.lack.value
        if self.failures:
            quality["failures"] = list(self.failures)
        if degraded_sources:
            quality["degraded_sources"] = list(degraded_sources)
        if sources_wait or (self.lack is not None and self.lack.may_pass):
            # This summary, or one of its sources, may be regenerated when a model is available.
            quality["waits"] = True
        return quality


class _Failure(NamedTuple):
    """A failed attempt of one summarizer."""

    summarizer: str
    level: Level
    reason: CallOutcome | NotCalled | Refusal

    def __str__(self) -> str:
        return f"{self.summarizer} {self.level.value}: {self.reason.value}"


@dataclass(frozen=True)
class Escalation:
    """Summarizes at the levels normal, aggressive and deterministic, in this order.

    At the first two levels, the summarizers of the chain are called in order, until one answers. At the third,
    `last_resort` is called. A text that is not accepted leads to the next level. `models` names the summarizers that
    call a model.
    """

    chain: tuple[Summarizer, ...]
    last_resort: Summarizer
    models: frozenset[str] = frozenset()

    def summarize(self, request: SummaryRequest) -> Accepted | None:
        """Return the first acceptable text: shorter than its sources, near its target.

        The deterministic level meets its target on any source, so None means that no summary would be shorter than the
        sources.
        """
        started = time.monotonic()
        failures: list[_Failure] = []
        # The counts are cached, because summarizers count the same texts repeatedly.
        request = replace(request, count_tokens=cache(request.count_tokens))
        for level, target, summarizers in (
            (Level.NORMAL, request.target_tokens, self.chain),
            (Level.AGGRESSIVE, max(1, request.target_tokens // 2), self.chain),
            (Level.DETERMINISTIC, request.target_tokens, (self.last_resort,)),
        ):
            if level is Level.AGGRESSIVE and not any(isinstance(each.reason, Refusal) for each in failures):
                # No text was rejected, so no summarizer of the chain was available.
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
        return Lack.UNAVAILABLE if reasons.isdisjoint(_UNANSWERED) else Lack.UNANSWERED


def _require_acceptable(text: str, request: SummaryRequest) -> int:
    """Return the tokens of a text; raises Rejected if it is empty or too long."""
    if not text.strip():
        raise Rejected(Refusal.EMPTY)
    tokens = request.count_tokens(text)
    # The text must be shorter than its sources, which are counted only until they exceed it.
    sources = accumulate(request.count_tokens(source.text) for source in request.sources)
    if tokens > request.acceptable_tokens or not any(total > tokens for total in sources):
        raise Rejected(Refusal.TOO_LONG)
    return tokens
