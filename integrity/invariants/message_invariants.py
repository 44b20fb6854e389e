"""Messages are complete: none is missing, unreachable or out of place."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.sql import load
from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity

SQL = load("integrity/message_invariants.sql")


@invariant(Severity.CRITICAL)
def messages_are_complete(conversation_ids: Sequence[int]) -> Found:
    """Every message from seq 1 to the newest exists, with every part that it was appended with.

    A finding is one gap, however long. `next_seq` gives the seq of the newest message.
    """
    return violations(SQL["messages_are_complete"], conversation_ids)


@invariant(Severity.CRITICAL)
def messages_are_reachable_once(conversation_ids: Sequence[int]) -> Found:
    """Every message is reached from the active context in exactly one way: raw, or through one summary."""
    return violations(SQL["messages_are_reachable_once"], conversation_ids)


@invariant(Severity.CRITICAL)
def recording_never_goes_back(conversation_ids: Sequence[int]) -> Found:
    """No message was recorded before its predecessor, and no conversation last written before its newest message."""
    return violations(SQL["recording_never_goes_back"], conversation_ids)


@invariant(Severity.ERROR)
def parts_have_the_names_of_their_place(conversation_ids: Sequence[int]) -> Found:
    """Every part has the id of its message and ordinal, and the session of its conversation."""
    return violations(SQL["parts_have_the_names_of_their_place"], conversation_ids)
