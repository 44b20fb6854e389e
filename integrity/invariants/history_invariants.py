"""Messages, context and lineage are complete and agree with each other."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.sql import load
from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity

SQL = load("integrity/history_invariants.sql")


@invariant(Severity.CRITICAL)
def messages_are_complete(conversation_ids: Sequence[int]) -> Found:
    """Every message from seq 1 to the newest exists, with all its parts.

    A finding is one gap, however long. `next_seq` gives the seq of the newest message.
    """
    return violations(SQL["messages_are_complete"], conversation_ids)


@invariant(Severity.CRITICAL)
def messages_are_reachable_once(conversation_ids: Sequence[int]) -> Found:
    """The active context reaches every message in exactly one way."""
    return violations(SQL["messages_are_reachable_once"], conversation_ids)


@invariant(Severity.CRITICAL)
def recording_never_goes_back(conversation_ids: Sequence[int]) -> Found:
    """Times of recording never go back, in messages and conversations."""
    return violations(SQL["recording_never_goes_back"], conversation_ids)


@invariant(Severity.ERROR)
def parts_have_the_names_of_their_place(conversation_ids: Sequence[int]) -> Found:
    """Every part has the id of its place and the session of its conversation."""
    return violations(SQL["parts_have_the_names_of_their_place"], conversation_ids)


@invariant(Severity.ERROR)
def context_points_at_rows(conversation_ids: Sequence[int]) -> Found:
    """Every context item points at one message or summary of its conversation."""
    return violations(SQL["context_points_at_rows"], conversation_ids)


@invariant(Severity.ERROR)
def ordinals_are_unique(conversation_ids: Sequence[int]) -> Found:
    """No ordinal or seq is used twice among items, messages, parts or sources."""
    return violations(SQL["ordinals_are_unique"], conversation_ids)


@invariant(Severity.ERROR)
def context_is_what_lineage_says(conversation_ids: Sequence[int]) -> Found:
    """The stored context equals the one derived from lineage.

    It has the summaries that are no source and not superseded, and the messages in no summary, each at its first seq.
    """
    return violations(SQL["context_is_what_lineage_says"], conversation_ids, message_overhead=MESSAGE_OVERHEAD_TOKENS)


@invariant(Severity.ERROR)
def nothing_is_shown_twice(conversation_ids: Sequence[int]) -> Found:
    """No message and no summary is in a context twice."""
    return violations(SQL["nothing_is_shown_twice"], conversation_ids)


@invariant(Severity.ERROR)
def summaries_have_sources(conversation_ids: Sequence[int]) -> Found:
    """Every summary links to at least one source."""
    return violations(SQL["summaries_have_sources"], conversation_ids)


@invariant(Severity.ERROR)
def lineage_stays_in_its_conversation(conversation_ids: Sequence[int]) -> Found:
    """Every summary's sources exist in the same conversation."""
    return violations(SQL["lineage_stays_in_its_conversation"], conversation_ids)


@invariant(Severity.ERROR)
def lineage_has_no_cycle(conversation_ids: Sequence[int]) -> Found:
    """No summary is, directly or through others, a source of itself."""
    return violations(SQL["lineage_has_no_cycle"], conversation_ids)


@invariant(Severity.ERROR)
def summaries_know_what_they_cover(conversation_ids: Sequence[int]) -> Found:
    """Range, times, depth, tokens and counts of a summary are those of its sources."""
    return violations(SQL["summaries_know_what_they_cover"], conversation_ids)


@invariant(Severity.ERROR)
def redone_summaries_stand_for_the_same(conversation_ids: Sequence[int]) -> Found:
    """A summary that supersedes another covers exactly the same messages."""
    return violations(SQL["redone_summaries_stand_for_the_same"], conversation_ids)


@invariant(Severity.ERROR)
def sources_are_numbered_from_zero(conversation_ids: Sequence[int]) -> Found:
    """The sources of every summary are numbered from 0 without a gap."""
    return violations(SQL["sources_are_numbered_from_zero"], conversation_ids)
