"""Nothing is left lying about: what was begun has ended."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity


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
