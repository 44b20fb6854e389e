"""Invariants of session, arc and epoch summaries."""

from __future__ import annotations

from collections.abc import Iterator

from conversations.sql import load
from integrity.invariants.figure_invariants import miscounted_summaries
from integrity.invariants.invariant import in_sql, invariant, stream_rows
from integrity.types import Finding, Severity

FILE = "integrity/session_invariants.sql"
SQL = load(FILE)

in_sql(
    FILE,
    Severity.CRITICAL,
    {
        "session_summaries_match_their_hashes": (
            "Every session, arc and epoch summary's hash seals its text and its sources."
        ),
        "sessions_reach_every_message": (
            "Every current session summary reaches each message up to its last seq in exactly one way."
        ),
    },
    of_the_site=True,
)
in_sql(
    FILE,
    Severity.ERROR,
    {
        "history_sources_are_numbered_from_zero": (
            "The sources of every session, arc and epoch summary are numbered from 0 without a gap."
        ),
        "history_rests_on_its_own": (
            "Sessions rest on items of their conversation, arcs on sessions and epochs on arcs of their project."
        ),
        "history_has_one_line": (
            "Every conversation has one current session summary, which is in one arc, and that in one epoch."
        ),
        "history_keeps_its_members": "An arc or epoch that supersedes another has the same members.",
        "history_knows_what_it_covers": "Range and times of a session, arc or epoch summary are those of its sources.",
        "erased_history_holds_no_text": "A session, arc or epoch summary has no text if and only if it is erased.",
    },
    of_the_site=True,
)
in_sql(
    FILE,
    Severity.WARNING,
    {"history_work_comes_to_an_end": "No job about sessions, arcs or epochs is left with an expired lease."},
    of_the_site=True,
)


@invariant(Severity.WARNING, of_the_site=True)
def history_tokens_are_recounts(workspace_id: int | None) -> Iterator[Finding]:
    """Each session, arc or epoch summary has as many tokens as its counter counts."""
    return miscounted_summaries(stream_rows(SQL["history_to_recount"], (), workspace_id=workspace_id))
