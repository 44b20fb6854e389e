"""Nothing is left lying about: what was begun has ended, and every row belongs to something."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from integrity.invariants.base import Found, invariant, violations
from integrity.types import Severity

# What leads from a table to what its rows belong to. Foreign keys hold these, as long as nobody gets past them.
_BELONGINGS = (
    ("messages", "'msg_' || t.message_id", "t.conversation_id", "conversations", "conversation_id"),
    ("message_parts", "t.part_id", "NULL::bigint", "messages", "message_id"),
    ("summaries", "t.summary_id", "t.conversation_id", "conversations", "conversation_id"),
    ("summary_messages", "t.summary_id", "NULL::bigint", "summaries", "summary_id"),
    ("summary_parents", "t.summary_id", "NULL::bigint", "summaries", "summary_id"),
    ("context_items", "'ordinal_' || t.ordinal", "t.conversation_id", "conversations", "conversation_id"),
    ("large_files", "t.file_id", "t.conversation_id", "conversations", "conversation_id"),
    ("file_references", "'msg_' || t.message_id", "NULL::bigint", "messages", "message_id"),
    ("file_references", "'msg_' || t.message_id", "NULL::bigint", "large_files", "file_id"),
    ("cold_blocks", "'cold_' || t.cold_block_id", "t.conversation_id", "conversations", "conversation_id"),
    ("quarantines", "t.target", "t.conversation_id", "conversations", "conversation_id"),
    ("compaction_jobs", "'job_' || t.job_id", "t.conversation_id", "conversations", "conversation_id"),
    ("compaction_runs", "t.run_id", "t.conversation_id", "conversations", "conversation_id"),
)


@invariant(Severity.ERROR, of_the_site=True)
def rows_belong_to_something(workspace_id: int | None) -> Found:
    """Every message, summary, link, item, file, job and run belongs to a conversation, message or summary that exists.

    Looked for in a check of everything alone: what belongs nowhere is in no workspace.
    """
    if workspace_id is not None:
        return Found()
    return violations(
        " UNION ALL ".join(
            f"""
            SELECT {conversation_id}, {id}, '{table}: there is no {key} ' || t.{key}
            FROM {table} t LEFT JOIN {owner} o ON o.{key} = t.{key} WHERE o.{key} IS NULL
            """
            for table, id, conversation_id, owner, key in _BELONGINGS
        ),
        (),
    )


@invariant(Severity.WARNING)
def work_comes_to_an_end(conversation_ids: Sequence[int]) -> Found:
    """No job is leased an hour after its lease ran out, and no run is at work a day after it began."""
    return violations(
        """
        SELECT conversation_id, 'job_' || job_id, format('is leased until %%s, and nobody took it up', leased_until)
        FROM compaction_jobs
        WHERE conversation_id = ANY(%(ids)s) AND state = 'leased'
          AND greatest(leased_until, run_after) < clock_timestamp() - interval '1 hour'
        UNION ALL
        SELECT conversation_id, run_id, format('is at work since %%s', started_at)
        FROM compaction_runs
        WHERE conversation_id = ANY(%(ids)s) AND outcome = 'running'
          AND started_at < clock_timestamp() - interval '1 day'
        """,
        conversation_ids,
    )


@invariant(Severity.WARNING, of_the_site=True)
def grants_come_to_an_end(workspace_id: int | None) -> Found:
    """No grant is open a month after it expired, or for longer than leave is ever given, a day."""
    # Grants are kept by retrieval, of which this room knows nothing but the table.
    if "grants" not in connection.introspection.table_names():
        return Found()
    return violations(
        """
        SELECT NULL::bigint, grant_id, format('was given %%s, expires %%s and is not closed', created_at, expires_at)
        FROM grants
        WHERE (%(workspace_id)s::bigint IS NULL OR workspace_id = %(workspace_id)s) AND revoked_at IS NULL
          AND (expires_at < clock_timestamp() - interval '31 days' OR expires_at > created_at + interval '25 hours')
        """,
        (),
        workspace_id=workspace_id,
    )
