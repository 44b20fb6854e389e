"""Tell how summaries derive from messages and from each other."""

from __future__ import annotations

from conversations.scope import Scope
from conversations.sql import rows
from retrieval.describing.summary_outlines import STATEMENTS, records_of
from retrieval.types import Lineage, LineageEdge, LineageNode, MessageSpan


def lineage(conversation_id: int, *, scope: Scope) -> Lineage:
    """See `RetrievalEngine.lineage`: five queries, whatever the size."""
    conversation = scope.conversation(conversation_id)
    whole = {"conversation_id": conversation_id, "from": 1, "upto": conversation.next_seq}
    return Lineage(
        conversation_id=conversation_id,
        message_count=conversation.counters.message_count,
        nodes=records_of(LineageNode, rows(STATEMENTS["nodes"], [conversation_id])),
        edges=records_of(LineageEdge, rows(STATEMENTS["edges"], [conversation_id])),
        raw_messages=records_of(MessageSpan, rows(STATEMENTS["raw_spans"], whole)),
        boundaries=tuple(each.as_record() for each in conversation.boundaries.order_by("last_seq", "boundary_id")),
    )
