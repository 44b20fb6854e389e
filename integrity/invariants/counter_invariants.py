"""A conversation's row knows without looking what one would find by counting."""

from __future__ import annotations

from collections.abc import Sequence

from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity


@invariant(Severity.WARNING)
def counters_are_recounts(conversation_ids: Sequence[int]) -> Found:
    """The counters of a conversation are what counting its rows gives."""
    return violations(
        """
        WITH said AS (
            SELECT conversation_id, max(seq) + 1 AS next_seq, sum(token_count) AS total_tokens,
                   count(cold_block_id) AS cold_messages
            FROM messages WHERE conversation_id = ANY(%(ids)s) GROUP BY conversation_id
        ), shown AS (
            SELECT conversation_id, count(message_id) AS active_messages, sum(token_count) AS active_tokens
            FROM context_items WHERE conversation_id = ANY(%(ids)s) GROUP BY conversation_id
        ), held AS (
            SELECT conversation_id, count(*) AS quarantined
            FROM quarantines WHERE conversation_id = ANY(%(ids)s) AND released_at IS NULL GROUP BY conversation_id
        ), compared AS (
            SELECT c.conversation_id, counter.*
            FROM conversations c
            LEFT JOIN said USING (conversation_id)
            LEFT JOIN shown USING (conversation_id)
            LEFT JOIN held USING (conversation_id)
            CROSS JOIN LATERAL (VALUES
                ('next_seq', c.next_seq::text, coalesce(said.next_seq, 1)::text),
                ('total_tokens', c.total_tokens::text, coalesce(said.total_tokens, 0)::text),
                ('active_messages', c.active_messages::text, coalesce(shown.active_messages, 0)::text),
                ('active_tokens', c.active_tokens::text, coalesce(shown.active_tokens, 0)::text),
                ('cold_messages', c.cold_messages::text, coalesce(said.cold_messages, 0)::text),
                ('quarantined', c.quarantined::text, coalesce(held.quarantined, 0)::text),
                -- Looked up, for an aggregate would hold every link to give back the last.
                ('chain_head', encode(c.chain_head, 'hex'), encode(coalesce((
                    SELECT m.chain_hash FROM messages m WHERE m.conversation_id = c.conversation_id
                    ORDER BY m.seq DESC LIMIT 1), ''), 'hex'))
            ) AS counter(name, kept, counted)
            WHERE c.conversation_id = ANY(%(ids)s)
        )
        SELECT conversation_id, name, format('is %%s; counting gives %%s', kept, counted)
        FROM compared WHERE kept <> counted
        """,
        conversation_ids,
    )
