"""Limit how long a search takes, and keep the planner from plans that are never right for one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction

from conversations.errors import LcmError
from conversations.sql import rows, snapshot

# An index always serves a search, but the planner may think otherwise of a word without statistics. To compile a plan
# takes longer than to run it. What is prepared is planned once, for any values.
_SETTINGS = {"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}
_NAMES = ("statement_timeout", *_SETTINGS)
_READ = "SELECT " + ", ".join(f"current_setting('{name}')" for name in _NAMES)
_SET = "SELECT " + ", ".join(f"set_config('{name}', %s, true)" for name in _NAMES)
# A search that stops a tenth late has kept its promise.
_NEARLY_ALL = 0.9


@dataclass(frozen=True)
class Deadline:
    """When a search has to be over."""

    at: float
    milliseconds: int

    def remaining_ms(self) -> int:
        """At least 1, because PostgreSQL takes 0 for no limit at all."""
        return max(1, int((self.at - time.monotonic()) * 1000))

    def impose(self) -> None:
        """Give every statement from here on only what is left, within `bounded`.

        It takes as long as a small search, and so is not done while nearly everything is left.
        """
        if self.remaining_ms() >= _NEARLY_ALL * self.milliseconds:
            return
        rows("SELECT set_config('statement_timeout', %s, true)", [str(self.remaining_ms())])


@contextmanager
def bounded(*, milliseconds: int, refusal: LcmError) -> Iterator[Deadline]:
    """Read from one snapshot; raise the refusal if that is not done in time.

    What has to be planned for its values is not to be prepared here (`rows_as_planned`).
    """
    deadline = Deadline(time.monotonic() + milliseconds / 1000, milliseconds)
    is_inside = connections[DEFAULT_DB_ALIAS].in_atomic_block
    try:
        with transaction.atomic() if is_inside else nullcontext(), snapshot():
            before = rows(_READ)[0] if is_inside else None
            rows(_SET, [str(milliseconds), *_SETTINGS.values()])
            yield deadline
            if before is not None:
                # A transaction that is not ours gets its own settings back.
                rows(_SET, before)
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise refusal from error
        raise
