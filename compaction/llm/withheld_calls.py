"""Failures of calls that were not made, so that nothing was spent."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from compaction.llm.types import ModelFailed


class Withheld(StrEnum):
    """Why a call was not made."""

    MISCONFIGURED = "misconfigured"
    BREAKER_OPEN = "breaker_open"
    SPEND_EXHAUSTED = "spend_exhausted"


class CallWithheld(ModelFailed):
    """No call was made; the same one may be made at `retry_at`, if that is known."""

    reason: ClassVar[Withheld]  # type: ignore[assignment]  # of a call that has no outcome

    def __init__(self, detail: str, *, retry_at: datetime | None = None) -> None:
        super().__init__(detail)
        self.retry_at = retry_at


class Misconfigured(CallWithheld):
    """A setting or key is missing; the detail names the setting, no value."""

    reason = Withheld.MISCONFIGURED


class BreakerOpen(CallWithheld):
    """The model failed too often: calls pause, or one is probing it."""

    reason = Withheld.BREAKER_OPEN


class SpendExhausted(CallWithheld):
    """The calls or the tokens of this window are spent."""

    reason = Withheld.SPEND_EXHAUSTED
