"""Keeps a search from taking longer than it may, and the planner from the few plans that are never right for one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from django.db import OperationalError, connection, transaction

from conversations.errors import LcmError
from conversations.reading import rows

_NAMES = ("statement_timeout", "enable_seqscan", "jit", "plan_cache_mode")
# A search that stops a tenth late has kept its promise.
_NEARLY_ALL = 0.9
_SET = "SELECT " + ", ".join(f"set_config('{name}', %s, true)" for name in _NAMES)
_GET = "SELECT " + ", ".join(f"current_setting('{name}')" for name in _NAMES)


@dataclass(frozen=True)
class Deadline:
    """When a search has to be over."""

    at: float
    milliseconds: int

    @classmethod
    def in_ms(cls, milliseconds: int) -> Deadline:
        return cls(time.monotonic() + milliseconds / 1000, milliseconds)

    def remaining_ms(self) -> int:
        """At least 1, because PostgreSQL takes 0 for no limit at all."""
        return max(1, int((self.at - time.monotonic()) * 1000))

    def impose(self) -> None:
        """Give every statement from here on only what is left; within `bounded`.

        To say so takes as long as a small search: while nearly everything is left, it is not worth it.
        """
        if self.remaining_ms() >= _NEARLY_ALL * self.milliseconds:
            return
        rows("SELECT set_config('statement_timeout', %s, true)", [str(self.remaining_ms())])


@contextmanager
def bounded(*, milliseconds: int, refusal: LcmError) -> Iterator[Deadline]:
    """Reads in one transaction; raises the refusal when they are not done in time.

    Sequential scans are out: an index always serves a search here, but for a word that the statistics do not know the
    planner may think otherwise. So is compiling plans, which takes longer than they run. What is prepared
    (`reading.rows`) is planned once, for any values; what has to be planned for the values at hand is not prepared.
    """
    deadline = Deadline.in_ms(milliseconds)
    is_inside = connection.in_atomic_block
    try:
        with transaction.atomic():
            # Somebody else's transaction gets its own settings back; ours takes them along when it ends.
            before = rows(_GET) if is_inside else []
            rows(_SET, [str(deadline.remaining_ms()), "off", "off", "force_generic_plan"])
            yield deadline
            for settings in before:
                rows(_SET, settings)
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise refusal from error
        raise
