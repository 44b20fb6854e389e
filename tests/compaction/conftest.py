from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.utils.module_loading import import_string

from compaction.engine import CompactionEngine
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
def wake_ups(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | str, float]]:
    """The wake-ups that were sent: job or plan, and delay."""
    heard: list[tuple[int | str, float]] = []

    def hear(task: str, *, delay_seconds: float, **given: int | str) -> None:
        assert import_string(task)
        [key] = given.values()
        heard.append((key, delay_seconds))

    monkeypatch.setattr("conversations.work.queue.wake", hear)
    return heard
