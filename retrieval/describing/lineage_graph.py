"""The summaries of a conversation as a graph: what was made from what, and what is still raw."""

from __future__ import annotations

from conversations.scope import Scope
from conversations.sql import rows
from conversations.types import Level, SummaryKind
from retrieval.types import Lineage, LineageEdge, LineageNode, MessageSpan

# A leaf's messages are as many as its sources; of a condensed summary, those sources that are no summaries.
_NODES = """
    SELECT s.summary_id, s.kind::text, s.depth, s.level, s.first_seq, s.last_seq, s.token_count, s.source_tokens,
           s.source_count, s.descendant_count, s.created_at
    FROM summaries s WHERE s.conversation_id = %s ORDER BY s.first_seq, s.depth DESC, s.summary_id
"""
_EDGES = """
    SELECT p.summary_id, p.parent_summary_id
    FROM summaries s JOIN summary_parents p ON p.summary_id = s.summary_id
    WHERE s.conversation_id = %s ORDER BY s.first_seq, s.depth DESC, p.summary_id, p.ordinal
"""
# Messages that follow each other have the same difference between their seq and their number in the list.
_RAW = """
    SELECT min(ordinal), max(ordinal)
    FROM (
        SELECT ordinal, ordinal - row_number() OVER (ORDER BY ordinal) AS island
        FROM context_items WHERE conversation_id = %s AND item_type = 'message'
    ) AS raw
    GROUP BY island ORDER BY 1
"""


def lineage(conversation_id: int, *, scope: Scope) -> Lineage:
    """See `RetrievalEngine.lineage`: five queries, whatever the size."""
    conversation = scope.conversation(conversation_id)
    edges = tuple(LineageEdge(*row) for row in rows(_EDGES, [conversation_id]))
    used = {edge.source_id for edge in edges}
    of_summaries: dict[str, int] = {}
    for edge in edges:
        of_summaries[edge.summary_id] = of_summaries.get(edge.summary_id, 0) + 1
    nodes = tuple(
        LineageNode(
            summary_id=row[0],
            kind=SummaryKind(row[1]),
            depth=row[2],
            level=Level(row[3]),
            first_seq=row[4],
            last_seq=row[5],
            token_count=row[6],
            source_tokens=row[7],
            direct_messages=row[8] - of_summaries.get(row[0], 0),
            descendant_count=row[9],
            created_at=row[10],
            active=row[0] not in used,
        )
        for row in rows(_NODES, [conversation_id])
    )
    return Lineage(
        conversation_id=conversation_id,
        message_count=conversation.counters.message_count,
        nodes=nodes,
        edges=edges,
        raw_messages=tuple(MessageSpan(*row) for row in rows(_RAW, [conversation_id])),
        boundaries=tuple(each.as_record() for each in conversation.boundaries.order_by("last_seq", "boundary_id")),
    )
