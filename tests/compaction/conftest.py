from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from compaction.background.jobs import job_due
from compaction.engine import CompactionEngine
from compaction.plans.plan_store import plan_due
from compaction.policy import CompactionPolicy
from tests.compaction.model_settings import Clock, Worker, models


@pytest.fixture
def engine() -> Callable[..., CompactionEngine]:
    """The engine as configured, with the given settings changed."""

    def build(**settings: Any) -> CompactionEngine:
        return replace(CompactionEngine.from_settings(), policy=CompactionPolicy(**settings))

    return build


@pytest.fixture
def worker(db: None) -> Callable[..., Worker]:
    clock = Clock()
    return lambda **settings: Worker(models(**settings), clock)


@pytest.fixture
def wake_ups() -> Iterator[list[tuple[int | str | None, float]]]:
    """The wake-ups that were sent: job or plan, and delay."""
    heard: list[tuple[int | str | None, float]] = []

    def hear(*, delay_seconds: float, job_id: int | None = None, plan_id: str | None = None, **_: object) -> None:
        heard.append((job_id or plan_id, delay_seconds))

    for due in (job_due, plan_due):
        due.connect(hear)
    yield heard
    for due in (job_due, plan_due):
        due.disconnect(hear)
