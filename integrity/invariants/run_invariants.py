"""The record of a compaction says what the compaction can have done."""

from __future__ import annotations

from collections.abc import Sequence

from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity


@invariant(Severity.WARNING)
def runs_add_up(conversation_ids: Sequence[int]) -> Found:
    """No run says that a context cost less than nothing, or more after compaction than before."""
    # The database refuses such a row; one that an earlier version has written stays until it is repaired.
    return violations(
        """
        SELECT conversation_id, run_id, format('%%s tokens before, %%s after', tokens_before, tokens_after)
        FROM compaction_runs
        WHERE conversation_id = ANY(%(ids)s)
          AND (tokens_before < 0 OR tokens_after < 0 OR (tokens_after > tokens_before AND redone_summaries = 0))
        """,
        conversation_ids,
    )
