"""Who asks a language model, as often as its guards let."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from compaction.llm.configuration import ModelsPolicy
from compaction.llm.guards import Guard, callable_models
from compaction.llm.types import BreakerOpen, CallOutcome, ModelFailed, SpendExhausted, Usage
from compaction.models import ModelEndpoint
from tests.compaction.model_settings import Clock

NOTHING = Usage()


@dataclass
class Worker:
    """One who asks the model, as often as it is let."""

    policy: ModelsPolicy
    clock: Clock
    name: str = "chat"
    made: list[CallOutcome] = field(default_factory=list)

    @property
    def guard(self) -> Guard:
        return Guard(name=self.name, policy=self.policy, now=self.clock)

    def call(self, outcome: CallOutcome = CallOutcome.ANSWERED, usage: Usage = NOTHING) -> None:
        self.guard.before_call()
        self.made.append(outcome)
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
