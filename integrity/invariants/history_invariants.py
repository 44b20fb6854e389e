"""Invariants: messages, contexts and lineage are complete and consistent."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.models import HeadMove
from conversations.sql import load
from conversations.store.paths import WHOLE, active_path
from integrity.invariants.invariant import Found, in_sql, invariant, violations
from integrity.types import Severity

FILE = "integrity/history_invariants.sql"
SQL = load(FILE)

in_sql(
    FILE,
    Severity.CRITICAL,
    {
        "messages_are_complete": "Every message from seq 1 to the newest exists, with all its parts.",
        "messages_are_reachable_once": "The active context reaches every message of its path in exactly one way.",
        "journals_are_complete": "Every journal entry that was kept is there, as it came.",
        "heads_follow_their_moves": "The head of every conversation is where its recorded moves lead.",
        "recording_never_goes_back": "Times of recording never go back, in messages and conversations.",
    },
)
in_sql(
    FILE,
    Severity.ERROR,
    {
        "parts_have_the_names_of_their_place": (
            "Every part has the id of its place and the session of its conversation."
        ),
        "context_points_at_rows": "Every context item points at one message or summary of its conversation.",
        "ordinals_are_unique": "No ordinal or seq is used twice among items, messages, parts or sources.",
        "nothing_is_shown_twice": "No message and no summary is in a context twice.",
        "summaries_have_sources": "Every summary links to at least one source.",
        "lineage_stays_in_its_conversation": "Every summary's sources exist in the same conversation.",
        "lineage_has_no_cycle": "No summary is, directly or through others, a source of itself.",
        "summaries_know_what_they_cover": (
            "Range, times, depth, tokens and counts of a summary are those of its sources."
        ),
        "redone_summaries_stand_for_the_same": "A summary that supersedes another covers exactly the same messages.",
        "sources_are_numbered_from_zero": "The sources of every summary are numbered from 0 without a gap.",
    },
)


@invariant(Severity.ERROR)
def context_is_what_lineage_says(conversation_ids: Sequence[int]) -> Found:
    """The stored context equals the one derived from lineage."""
    moved = set(HeadMove.objects.filter(conversation_id__in=conversation_ids).values_list("conversation_id", flat=True))
    groups = [([each for each in conversation_ids if each not in moved], WHOLE)]
    groups += [([each], active_path(each)) for each in sorted(moved)]
    found = Found()
    for ids, path in groups:
        values = {**path.values, "message_overhead": MESSAGE_OVERHEAD_TOKENS}
        found += violations(SQL["context_is_what_lineage_says"], ids, **values)
    return found
