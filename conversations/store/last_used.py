"""Record the day of a conversation's last use, with at most one write a day."""

from __future__ import annotations

from datetime import UTC, date, datetime

from conversations.models import Conversation
from conversations.sql import rows

_MARK = """
    UPDATE conversations SET last_used_on = %s
    WHERE conversation_id = %s AND last_used_on < %s RETURNING conversation_id
"""


def today() -> date:
    return datetime.now(UTC).date()


def note_use(conversation: Conversation) -> None:
    """Record the use of a conversation whose row was read. Appends do so themselves.

    Not within a snapshot, in which nothing can be written.
    """
    if conversation.last_used_on < today():
        _mark(conversation.conversation_id)


def note_use_of(conversation_id: int, *, known_since: datetime) -> None:
    """Record a use by something of the conversation that was made at this time.

    What was made today was made in a conversation that was used today, as a rule; only what is older is looked up.
    """
    if known_since.astimezone(UTC).date() < today():
        _mark(conversation_id)


def _mark(conversation_id: int) -> None:
    day = today()
    rows(_MARK, [day, conversation_id, day])
