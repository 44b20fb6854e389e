"""What a workspace takes up: rows and bytes, hot and cold, and what the cold tier saves."""

from __future__ import annotations

from dataclasses import dataclass

import psycopg
from django.db import OperationalError, connection, transaction

from conversations.cold_storage.cold_texts import PART_TEXTS
from conversations.scope import Scope
from conversations.sql import rows
from conversations.store.base import EVERYTHING
from integrity.retention.types import StorageStatistics

# Counting bytes looks at every message; a workspace where that takes longer is told without them.
LONGEST_MS = 5_000

_OWNED = "(%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)"
_COUNTS = f"""
    SELECT count(*), coalesce(sum(c.next_seq - 1), 0)::bigint, coalesce(sum(c.cold_messages), 0)::bigint
    FROM conversations c WHERE {_OWNED}
"""
_BLOCKS = f"""
    SELECT count(*), coalesce(sum(octet_length(b.packed)), 0)::bigint, coalesce(sum(b.bytes_before), 0)::bigint
    FROM cold_blocks b JOIN conversations c USING (conversation_id) WHERE {_OWNED}
"""
_SUMMARIES = f"""
    SELECT count(*), coalesce(sum(pg_column_size(s.content) + coalesce(pg_column_size(s.content_tsv), 0)), 0)::bigint
    FROM summaries s JOIN conversations c USING (conversation_id) WHERE {_OWNED}
"""
_FILES = f"""
    SELECT count(*), coalesce(sum(f.byte_size), 0)::bigint
    FROM large_files f JOIN conversations c USING (conversation_id) WHERE f.erased_by_id IS NULL AND {_OWNED}
"""
_ERASED = f"""
    SELECT count(*) FROM messages m JOIN conversations c USING (conversation_id)
    WHERE m.erased_by_id IS NOT NULL AND {_OWNED}
"""
_ALL = f"SELECT * FROM ({_COUNTS}) a, ({_BLOCKS}) b, ({_SUMMARIES}) c, ({_FILES}) d, ({_ERASED}) e"
# As they lie in the rows, compressed where they are.
_HOT = f"""
    SELECT coalesce(sum(
               pg_column_size(m.content) + coalesce(pg_column_size(m.content_tsv), 0) + pg_column_size(m.metadata)
               + coalesce(pg_column_size(m.exact), 0)
           ), 0)::bigint + (
               SELECT coalesce(sum({" + ".join(f"coalesce(pg_column_size(p.{name}), 0)" for name in PART_TEXTS)}), 0)
               FROM message_parts p JOIN messages m USING (message_id) JOIN conversations c USING (conversation_id)
               WHERE m.cold_block_id IS NULL AND {_OWNED}
           )::bigint
    FROM messages m JOIN conversations c USING (conversation_id) WHERE m.cold_block_id IS NULL AND {_OWNED}
"""


@dataclass(frozen=True)
class StorageReport:
    """Counts for one workspace or, for the operator's own tools, for all."""

    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> StorageReport:
        return cls(scope=scope)

    def storage(self) -> StorageStatistics:
        """How many messages, summaries and files there are, how many bytes they take by tier, and what is saved."""
        owned = {"workspace_id": self.scope.workspace_id}
        [found] = rows(_ALL, owned)
        conversations, messages, cold_messages, blocks, cold_bytes, cold_bytes_before, *rest = found
        summaries, summary_bytes, files, file_bytes, erased = rest
        return StorageStatistics(
            conversations=conversations,
            messages=messages,
            hot_messages=messages - cold_messages - erased,
            hot_bytes=_within(LONGEST_MS, _HOT, owned),
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
    """The one figure of a statement; None if it takes longer."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            # In this order: what it was, then what it is.
            cursor.execute(
                "SELECT current_setting('statement_timeout'), set_config('statement_timeout', %s, true)",
                [str(milliseconds)],
            )
            [before, _] = cursor.fetchone()
            cursor.execute(statement, values)
            [figure] = cursor.fetchone()
            # Somebody else's transaction gets its own setting back.
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [before])
            return int(figure)
    except OperationalError as error:
        if isinstance(error.__cause__, psycopg.errors.QueryCanceled):
            return None
        raise
