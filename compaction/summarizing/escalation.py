"""Try the levels in turn until a text is accepted; the last cannot fail."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from itertools import accumulate

from compaction.llm.types import CallOutcome, ModelFailed
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


@dataclass
class _Attempts:
    """What has failed so far."""

    failures: list[str] = field(default_factory=list)
    # Whether any model answered, or was at least there, and whether the last level had no answer at all.
    has_model_answered: bool = False
    was_model_there: bool = False
    is_silent: bool = False

    def note(self, summarizer: Summarizer, level: Level, reason: str) -> None:
        self.failures.append(f"{summarizer.name} {level.value}: {reason}")


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
        attempts = _Attempts()
        # Summarizers count the same texts again and again.
        count_tokens = cache(self.count_tokens)
        request = replace(request, count_tokens=count_tokens)
        for level, target in (
            (Level.NORMAL, request.target_tokens),
            (Level.AGGRESSIVE, max(1, request.target_tokens // 2)),
            (Level.DETERMINISTIC, request.target_tokens),
        ):
            if level is Level.AGGRESSIVE and attempts.is_silent:
                # No summarizer of the chain was available a moment ago.
                continue
            at_level = replace(request, level=level, target_tokens=target, most_tokens=request.acceptable_tokens)
            made = self._made(at_level, attempts)
            if made is None:
                continue
            summarizer, draft = made
            tokens = count_tokens(draft.text)
            if draft.text.strip() and tokens <= request.acceptable_tokens and self._is_less(tokens, request):
                return Accepted(
                    draft=draft,
                    level=level,
                    tokens=tokens,
                    retention=retention((source.text for source in request.sources), draft.text),
                    duration_ms=int(1000 * (time.monotonic() - started)),
                    lack=self._lack(summarizer, attempts),
                    failures=tuple(attempts.failures),
                )
            attempts.note(summarizer, level, str(Refusal.TOO_LONG if draft.text.strip() else Refusal.EMPTY))
        return None

    def _made(self, request: SummaryRequest, attempts: _Attempts) -> tuple[Summarizer, SummaryDraft] | None:
        """The first draft of the request, and its summarizer."""
        if request.level is Level.DETERMINISTIC:
            return self.last_resort, self.last_resort.summarize(request)
        for summarizer in self.chain:
            try:
                draft = summarizer.summarize(request)
            except ModelFailed as failure:
                attempts.was_model_there |= failure.reason in _NO_ANSWER_TO_THIS
                attempts.note(summarizer, request.level, str(failure.reason))
            except Rejected as rejected:
                attempts.has_model_answered = True
                attempts.note(summarizer, request.level, str(rejected.reason))
                return None
            else:
                attempts.has_model_answered |= summarizer.name in self.models
                return summarizer, replace(draft, text=storable(draft.text))
        attempts.is_silent = True
        return None

    def _lack(self, maker: Summarizer, attempts: _Attempts) -> Lack | None:
        if not self.models or maker.name in self.models:
            return None
        if attempts.has_model_answered:
            return Lack.REJECTED
        return Lack.UNANSWERED if attempts.was_model_there else Lack.UNAVAILABLE

    def _is_less(self, tokens: int, request: SummaryRequest) -> bool:
        """Whether the sources have more tokens; counted no farther than needed."""
        counts = (self.count_tokens(source.text) for source in request.sources)
        return any(total > tokens for total in accumulate(counts))
