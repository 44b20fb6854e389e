"""Keeps a search from taking longer than it may, and the planner from the few plans that are never right for one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg
from django.db import DEFAULT_DB_ALIAS, OperationalError, connections, transaction

from conversations.errors import LcmError
from conversations.sql import rows, snapshot

_IMPOSED = {
    "statement_timeout": "%(milliseconds)s",
    "enable_seqscan": "'off'",
    "jit": "'off'",
    "plan_cache_mode": "'force_generic_plan'",
}
# A search that stops a tenth late has kept its promise.
_NEARLY_ALL = 0.9
_SET = "SELECT " + ", ".join(f"set_config('{name}', %s, true)" for name in _IMPOSED)
# A value that sets them, and tells what they were: those are read in a step of their own, which comes first.
IMPOSED = f"""(
    SELECT ARRAY[{", ".join(f"before_{name}, set_config('{name}', {value}, true)" for name, value in _IMPOSED.items())}]
    FROM (SELECT {", ".join(f"current_setting('{name}') AS before_{name}" for name in _IMPOSED)} OFFSET 0) AS earlier
)"""


class First(Protocol):
    """A question to be asked together with setting the limits: the first column of its rows is `IMPOSED`."""

    @property
    def statement(self) -> str: ...

    @property
    def values(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class Deadline:
    """When a search has to be over. `told`: the rows that its first question was answered with."""

    at: float
    milliseconds: int
    told: Sequence[tuple[Any, ...]]

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
def bounded(*, milliseconds: int, refusal: LcmError, first: First) -> Iterator[Deadline]:
    """Reads of one moment; raises the refusal when they are not done in time. `first` is asked at once.

    Sequential scans are out: an index always serves a search here, but for a word that the statistics do not know the
    planner may think otherwise. So is compiling plans, which takes longer than they run. What is prepared
    (`sql.rows`) is planned once, for any values; what has to be planned for the values at hand is not prepared.
    """
    at = time.monotonic() + milliseconds / 1000
    is_inside = connections[DEFAULT_DB_ALIAS].in_atomic_block
    try:
        with transaction.atomic() if is_inside else nullcontext(), snapshot():
            told = rows(first.statement, {**first.values, "milliseconds": str(milliseconds)})
            yield Deadline(at, milliseconds, [row[1:] for row in told])
            if is_inside:
                # Somebody else's transaction gets its own settings back; ours takes them along when it ends.
                rows(_SET, told[0][0][::2])
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            raise refusal from error
        raise
