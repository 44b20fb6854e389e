"""The summary DAG of a conversation as nodes and edges; of messages only counts and stretches, so it stays small."""

from __future__ import annotations

from conversations.models import Conversation
from conversations.reading import rows, snapshot
from conversations.scope import Scope
from conversations.types import Level, SummaryKind
from retrieval.types import Lineage, LineageEdge, LineageNode, MessageSpan

_NODES = """
    SELECT s.summary_id, s.kind::text, s.depth, s.level, s.first_seq, s.last_seq, s.token_count, s.source_tokens,
           (SELECT count(*) FROM summary_messages l WHERE l.summary_id = s.summary_id),
           s.descendant_count, s.created_at,
           NOT EXISTS (SELECT FROM summary_parents d WHERE d.parent_summary_id = s.summary_id)
    FROM summaries s WHERE s.conversation_id = %s
    ORDER BY s.first_seq, s.depth DESC, s.summary_id
"""
_EDGES = """
    SELECT p.summary_id, p.parent_summary_id
    FROM summary_parents p JOIN summaries s ON s.summary_id = p.summary_id
    WHERE s.conversation_id = %s
    ORDER BY s.first_seq, s.depth DESC, p.summary_id, p.ordinal
"""
# Rows that follow each other without a gap keep the same distance from their own number in the list.
_RAW = """
    SELECT min(ordinal), max(ordinal) FROM (
        SELECT ordinal, ordinal - row_number() OVER (ORDER BY ordinal) AS stretch
        FROM context_items WHERE conversation_id = %s AND item_type = 'message'
    ) numbered GROUP BY stretch ORDER BY 1
"""


def lineage_of(scope: Scope, conversation_id: int) -> Lineage:
    """All summaries of the conversation and what each was made from; five queries whatever its length."""
    with snapshot():
        conversation: Conversation = scope.conversation(conversation_id)
        nodes = rows(_NODES, [conversation_id])
        edges = rows(_EDGES, [conversation_id])
        raw = rows(_RAW, [conversation_id])
    return Lineage(
        conversation_id=conversation_id,
        message_count=conversation.next_seq - 1,
        nodes=tuple(
            LineageNode(
                summary_id=summary_id,
                kind=SummaryKind(kind),
                depth=depth,
                level=Level(level),
                first_seq=first_seq,
                last_seq=last_seq,
                token_count=token_count,
                source_tokens=source_tokens,
                direct_messages=direct_messages,
                descendant_count=descendant_count,
                created_at=created_at,
                active=active,
            )
            for (
                summary_id, kind, depth, level, first_seq, last_seq, token_count, source_tokens, direct_messages,
                descendant_count, created_at, active,
            ) in nodes
        ),
        edges=tuple(LineageEdge(summary_id=summary_id, source_id=source_id) for summary_id, source_id in edges),
        raw_messages=tuple(MessageSpan(first, last) for first, last in raw),
    )  # fmt: skip
