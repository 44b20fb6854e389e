"""Every summary can be expanded down to its messages, and describes them correctly."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.sql import load
from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity

SQL = load("integrity/lineage_invariants.sql")


@invariant(Severity.ERROR)
def summaries_have_sources(conversation_ids: Sequence[int]) -> Found:
    """Every summary links to at least one source."""
    return violations(SQL["summaries_have_sources"], conversation_ids)


@invariant(Severity.ERROR)
def lineage_stays_in_its_conversation(conversation_ids: Sequence[int]) -> Found:
    """Every link leads from a summary to a message or summary that exists in the same conversation."""
    return violations(SQL["lineage_stays_in_its_conversation"], conversation_ids)


@invariant(Severity.ERROR)
def lineage_has_no_cycle(conversation_ids: Sequence[int]) -> Found:
    """No summary is, directly or through others, a source of itself."""
    return violations(SQL["lineage_has_no_cycle"], conversation_ids)


@invariant(Severity.ERROR)
def summaries_know_what_they_cover(conversation_ids: Sequence[int]) -> Found:
    """Seqs, times, depth, tokens and counts of a summary are those of its sources taken together."""
    return violations(SQL["summaries_know_what_they_cover"], conversation_ids)


@invariant(Severity.ERROR)
def redone_summaries_stand_for_the_same(conversation_ids: Sequence[int]) -> Found:
    """A summary that supersedes another covers exactly the same messages of the same conversation."""
    return violations(SQL["redone_summaries_stand_for_the_same"], conversation_ids)


@invariant(Severity.ERROR)
def sources_are_numbered_from_zero(conversation_ids: Sequence[int]) -> Found:
    """The sources of every summary, messages and summaries each, are numbered from 0 without a gap."""
    return violations(SQL["sources_are_numbered_from_zero"], conversation_ids)
