"""Language models as tests configure them, and a clock that stands still until it is told."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from traceback import TracebackException
from typing import Any

from compaction.llm.configuration import ModelsPolicy

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
class Clock:
    moment: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def forward(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
