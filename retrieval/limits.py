"""Keeps a search from taking longer than it may, and the planner from the few plans that are never right for one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from django.db import OperationalError, connection, transaction

from conversations.errors import LcmError

_NAMES = ("statement_timeout", "enable_seqscan", "jit")
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
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [str(self.remaining_ms())])


@contextmanager
def bounded(*, milliseconds: int, refusal: LcmError) -> Iterator[Deadline]:
    """Reads in one transaction; raises the refusal when they are not done in time.

    Sequential scans are out: an index always serves a search here, but for a word that the statistics do not know the
    planner may think otherwise. So is compiling plans, which takes longer than they run.
    """
    deadline = Deadline.in_ms(milliseconds)
    is_inside = connection.in_atomic_block
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            before = None
            if is_inside:
                # Somebody else's transaction gets its own settings back; ours takes them along when it ends.
                cursor.execute(_GET)
                before = cursor.fetchone()
            cursor.execute(_SET, [str(deadline.remaining_ms()), "off", "off"])
            yield deadline
            if before is not None:
                cursor.execute(_SET, before)
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise refusal from error
        raise
