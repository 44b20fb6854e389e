"""Language models as tests configure them, one in process, who asks them, and a clock that is moved by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from traceback import TracebackException
from typing import Any

import pytest

from compaction.llm.configuration import ModelsPolicy
from compaction.llm.guards import Guard, callable_models
from compaction.llm.types import BreakerOpen, CallOutcome, ModelFailed, SpendExhausted, Usage
from compaction.models import ModelEndpoint
from compaction.summarizing.escalation import Escalation
from compaction.summarizing.extractive.telegraphic_summarizer import TelegraphicSummarizer
from compaction.summarizing.summarizer import SummaryDraft, SummaryRequest

# Found again wherever it should not be.
KEY = "sk-never-shown-4242"


def models(**settings: Any) -> ModelsPolicy:
    """Both models configured, on a port where nobody answers."""
    nowhere = "http://127.0.0.1:9/v1"
    given = {
        "chat_url": nowhere,
        "chat_model": "small",
        "chat_key": KEY,
        "anthropic_url": nowhere,
        "anthropic_model": "large",
    }
    return ModelsPolicy(**given | settings)


def shown(error: BaseException) -> str:
    """All that a debugging page would print of an error: what led to it, and all locals but the test's."""
    traceback = error.__traceback__
    inner = traceback.tb_next if traceback is not None else None
    return "".join(TracebackException(type(error), error, inner, capture_locals=True).format())


@dataclass
class Model:
    """A model that answers, is away, or answers with nothing of use."""

    failure: Exception | None = None
    requests: list[SummaryRequest] = field(default_factory=list)
    name: str = "model"
    # What it writes, if that matters.
    write: Callable[[SummaryRequest], str] | None = None
    # What happens while it works.
    meanwhile: Callable[[], object] = lambda: None

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        self.requests.append(request)
        self.meanwhile()
        if self.failure is not None:
            raise self.failure
        text = f"Written by a model, number {len(self.requests)}." if self.write is None else self.write(request)
        return SummaryDraft(text=text, model="a-model")


def asking_only(model: Any, built: Any) -> Any:
    """An engine or a history as it was built, but for whom it asks."""
    escalation = Escalation(
        chain=(model,),
        last_resort=TelegraphicSummarizer(),
        models=frozenset({model.name}),
    )
    return replace(built, escalation=escalation)


@dataclass
class Clock:
    moment: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def forward(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


NOTHING = Usage()


@dataclass
class Worker:
    """One who asks the model, as often as it is let."""

    policy: ModelsPolicy
    clock: Clock
    name: str = "chat"

    @property
    def guard(self) -> Guard:
        return Guard(name=self.name, policy=self.policy, now=self.clock)

    def call(self, outcome: CallOutcome = CallOutcome.ANSWERED, usage: Usage = NOTHING) -> None:
        self.guard.before_call()
        self.guard.after_call(outcome, usage)

    def refusal(self) -> ModelFailed:
        """Why a call would not be made."""
        with pytest.raises((BreakerOpen, SpendExhausted)) as refused:
            self.guard.before_call()
        return refused.value

    def fail(self, times: int, outcome: CallOutcome = CallOutcome.UNREACHABLE) -> None:
        for _ in range(times):
            self.call(outcome)

    @property
    def row(self) -> ModelEndpoint:
        return ModelEndpoint.objects.get(name=self.name)

    def is_reachable(self) -> bool:
        return self.name in callable_models([self.name], policy=self.policy, now=self.clock)
