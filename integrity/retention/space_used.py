"""The space that a workspace uses, hot and cold."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from django.db import OperationalError, connection, transaction

from conversations.scope import EVERYTHING, Scope
from conversations.sql import first_row, load
from integrity.retention.types import StorageStatistics

# Counting bytes reads every message; where that takes longer, the answer leaves the bytes out.
LONGEST_MS = 5_000

SQL = load("integrity/retention.sql")


@dataclass(frozen=True)
class StorageReport:
    """Counts for one workspace or, for the operator's own tools, for all."""

    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> StorageReport:
        return cls(scope=scope)

    def storage(self) -> StorageStatistics:
        """Count messages, summaries, files and bytes by tier, and the saving."""
        owned = {"workspace_id": self.scope.workspace_id}
        counts = first_row(SQL["space_used"], owned)
        assert counts is not None, "it has one row"
        return StorageStatistics(**counts, hot_bytes=_within(LONGEST_MS, SQL["hot_bytes"], owned))


def _within(milliseconds: int, statement: str, values: dict[str, int | None]) -> int | None:
    """Return the one figure of a statement; None if it times out."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # In this order: the previous value, then the new one.
            cursor.execute(
                "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)",
                [str(milliseconds)],
            )
            [before, _] = cursor.fetchone()
            cursor.execute(statement, values)
            [figure] = cursor.fetchone()
            # The caller's transaction keeps its own setting.
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [before])
            return int(figure)
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            return None
        raise
