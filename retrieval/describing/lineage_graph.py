"""The lineage of a conversation as a graph of summaries."""

from __future__ import annotations

from conversations.scope import Scope
from conversations.sql import load, rows
from conversations.types import Level, SummaryKind
from retrieval.types import Lineage, LineageEdge, LineageNode, MessageSpan

_SQL = load("retrieval/lineage_graph.sql")


def lineage(conversation_id: int, *, scope: Scope) -> Lineage:
    """See `RetrievalEngine.lineage`: five queries, whatever the size."""
    conversation = scope.conversation(conversation_id)
    edges = tuple(LineageEdge(*row) for row in rows(_SQL["edges"], [conversation_id]))
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
        for row in rows(_SQL["nodes"], [conversation_id])
    )
    return Lineage(
        conversation_id=conversation_id,
        message_count=conversation.counters.message_count,
        nodes=nodes,
        edges=edges,
        raw_messages=tuple(MessageSpan(*row) for row in rows(_SQL["raw_spans"], [conversation_id])),
        boundaries=tuple(each.as_record() for each in conversation.boundaries.order_by("last_seq", "boundary_id")),
    )
