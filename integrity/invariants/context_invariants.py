"""The active context shows what the lineage says."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.sql import load
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity

SQL = load("integrity/context_invariants.sql")


@invariant(Severity.ERROR)
def context_points_at_rows(conversation_ids: Sequence[int]) -> Found:
    """Every context item points at one message or summary that exists in the same conversation."""
    return violations(SQL["context_points_at_rows"], conversation_ids)


@invariant(Severity.ERROR)
def ordinals_are_unique(conversation_ids: Sequence[int]) -> Found:
    """No ordinal is used twice: in a context, in a conversation, in a message, or among the sources of a summary."""
    return violations(SQL["ordinals_are_unique"], conversation_ids)


@invariant(Severity.ERROR)
def context_is_what_lineage_says(conversation_ids: Sequence[int]) -> Found:
    """The stored context equals the derived one: each item at its first seq, and a message with its token count.

    Derived are the summaries that are nobody's source and not superseded, and the messages in no summary.
    """
    return violations(SQL["context_is_what_lineage_says"], conversation_ids, message_overhead=MESSAGE_OVERHEAD_TOKENS)


@invariant(Severity.ERROR)
def nothing_is_shown_twice(conversation_ids: Sequence[int]) -> Found:
    """No message and no summary is in a context twice."""
    return violations(SQL["nothing_is_shown_twice"], conversation_ids)
