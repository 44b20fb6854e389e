"""The active context tells what the lineage says."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity


@invariant(Severity.ERROR)
def context_points_at_rows(conversation_ids: Sequence[int]) -> Found:
    """Every context item points at one message or summary that exists in the same conversation."""
    return violations(
        """
        SELECT c.conversation_id, 'ordinal_' || c.ordinal,
               CASE
                   WHEN coalesce(m.message_id::text, s.summary_id) IS NULL THEN format(
                       'there is no %%s to point at', coalesce('msg_' || c.message_id, c.summary_id, 'row'))
                   WHEN coalesce(m.conversation_id, s.conversation_id) <> c.conversation_id THEN format(
                       '%%s is of conversation %%s', coalesce('msg_' || m.message_id, s.summary_id),
                       coalesce(m.conversation_id, s.conversation_id))
                   ELSE format('a %%s item does not point at a %%s and nothing else', c.item_type, c.item_type)
               END
        FROM context_items c
        LEFT JOIN messages m ON m.message_id = c.message_id
        LEFT JOIN summaries s ON s.summary_id = c.summary_id
        WHERE c.conversation_id = ANY(%(ids)s)
          AND (coalesce(m.conversation_id, s.conversation_id) IS DISTINCT FROM c.conversation_id
               OR (c.item_type = 'message') <> (c.message_id IS NOT NULL)
               OR (c.item_type = 'summary') <> (c.summary_id IS NOT NULL))
        """,
        conversation_ids,
    )


@invariant(Severity.ERROR)
def ordinals_are_unique(conversation_ids: Sequence[int]) -> Found:
    """No place is taken twice: in a context, in a conversation, in a message, or among the sources of a summary."""
    return violations(
        """
        SELECT conversation_id, 'ordinal_' || ordinal, format('%%s context items have this ordinal', count(*))
        FROM context_items WHERE conversation_id = ANY(%(ids)s)
        GROUP BY conversation_id, ordinal HAVING count(*) > 1
        UNION ALL
        SELECT conversation_id, 'seq_' || seq, format('%%s messages have this seq', count(*))
        FROM messages WHERE conversation_id = ANY(%(ids)s)
        GROUP BY conversation_id, seq HAVING count(*) > 1
        UNION ALL
        SELECT m.conversation_id, 'msg_' || m.message_id, format('%%s parts have ordinal %%s', count(*), p.ordinal)
        FROM message_parts p JOIN messages m USING (message_id) WHERE m.conversation_id = ANY(%(ids)s)
        GROUP BY m.conversation_id, m.message_id, p.ordinal HAVING count(*) > 1
        UNION ALL
        SELECT s.conversation_id, s.summary_id, format('%%s source messages have ordinal %%s', count(*), l.ordinal)
        FROM summary_messages l JOIN summaries s USING (summary_id) WHERE s.conversation_id = ANY(%(ids)s)
        GROUP BY s.conversation_id, s.summary_id, l.ordinal HAVING count(*) > 1
        UNION ALL
        SELECT s.conversation_id, s.summary_id, format('%%s source summaries have ordinal %%s', count(*), p.ordinal)
        FROM summary_parents p JOIN summaries s USING (summary_id) WHERE s.conversation_id = ANY(%(ids)s)
        GROUP BY s.conversation_id, s.summary_id, p.ordinal HAVING count(*) > 1
        """,
        conversation_ids,
    )


@invariant(Severity.ERROR)
def context_is_what_lineage_says(conversation_ids: Sequence[int]) -> Found:
    """The stored context is the derived one: each at its first seq, and a message for what it counts.

    Derived are the summaries that are nobody's source and not superseded, and the messages in no summary.
    """
    return violations(
        f"""
        WITH derived AS (
            SELECT m.conversation_id, m.seq AS ordinal, 'msg_' || m.message_id AS id,
                   m.token_count + {MESSAGE_OVERHEAD_TOKENS} AS tokens
            FROM messages m
            WHERE m.conversation_id = ANY(%(ids)s)
              AND NOT EXISTS (SELECT FROM summary_messages l WHERE l.message_id = m.message_id)
            UNION ALL
            SELECT s.conversation_id, s.first_seq, s.summary_id, NULL
            FROM summaries s
            WHERE s.conversation_id = ANY(%(ids)s)
              AND NOT EXISTS (SELECT FROM summary_parents p WHERE p.parent_summary_id = s.summary_id)
              AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id)
        ), stored AS (
            SELECT conversation_id, ordinal, coalesce('msg_' || message_id, summary_id, 'nothing') AS id,
                   CASE WHEN message_id IS NOT NULL THEN token_count END AS tokens
            FROM context_items WHERE conversation_id = ANY(%(ids)s)
        )
        SELECT coalesce(d.conversation_id, s.conversation_id), coalesce(d.id, s.id),
               CASE
                   WHEN s.id IS NULL THEN format('is missing in the context, at %%s', d.ordinal)
                   WHEN d.id IS NULL THEN format('should not be in the context, at %%s', s.ordinal)
                   WHEN d.ordinal <> s.ordinal THEN format('stands at %%s instead of %%s', s.ordinal, d.ordinal)
                   ELSE format('costs %%s tokens in the context instead of %%s', s.tokens, d.tokens)
               END
        FROM derived d FULL JOIN stored s ON s.conversation_id = d.conversation_id AND s.id = d.id
        WHERE (d.ordinal, d.tokens) IS DISTINCT FROM (s.ordinal, s.tokens)
        """,
        conversation_ids,
    )


@invariant(Severity.ERROR)
def nothing_is_shown_twice(conversation_ids: Sequence[int]) -> Found:
    """No message and no summary stands in a context twice."""
    return violations(
        """
        SELECT conversation_id, coalesce('msg_' || message_id, summary_id),
               format('stands in the context %%s times, at %%s', count(*),
                      string_agg(ordinal::text, ', ' ORDER BY ordinal))
        FROM context_items WHERE conversation_id = ANY(%(ids)s)
        GROUP BY conversation_id, message_id, summary_id HAVING count(*) > 1
        """,
        conversation_ids,
    )
