"""The space that a workspace uses, hot and cold."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from django.db import OperationalError, connection, transaction

from conversations.scope import EVERYTHING, Scope
from conversations.sql import load, rows
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
        [found] = rows(SQL["space_used"], owned)
        conversations, messages, cold_messages, blocks, cold_bytes, cold_bytes_before, *rest = found
        summaries, summary_bytes, files, file_bytes, erased = rest
        return StorageStatistics(
            conversations=conversations,
            messages=messages,
            hot_messages=messages - cold_messages - erased,
            hot_bytes=_within(LONGEST_MS, SQL["hot_bytes"], owned),
            cold_messages=cold_messages,
            cold_blocks=blocks,
            cold_bytes=cold_bytes,
            cold_bytes_before=cold_bytes_before,
            bytes_saved=cold_bytes_before - cold_bytes,
            erased_messages=erased,
            summaries=summaries,
            summary_bytes=summary_bytes,
            files=files,
            file_bytes=file_bytes,
        )


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
