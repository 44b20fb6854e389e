"""Rewrites a whole history: a text, and after it every hash that follows from it, so that nothing contradicts it."""

from __future__ import annotations

from conversations.content import hashing
from conversations.models import Message, Summary
from conversations.sql import rows
from tests.integrity.breaking import breaking, forging


def rewrite(conversation_id: int, *, seq: int, text: str) -> None:
    """Let this message say something else, as somebody who may write to every row."""
    message = Message.objects.get(conversation_id=conversation_id, seq=seq)
    content_hash = hashing.content_hash(text)
    parts = rows(
        "SELECT part_hash FROM message_parts WHERE message_id = %s AND ordinal < %s ORDER BY ordinal",
        [message.pk, message.chained_parts],
    )
    entry_hash = hashing.entry_hash(
        role=message.role, author=message.author, content=content_hash, parts=[bytes(each) for (each,) in parts]
    )
    breaking(
        "UPDATE messages SET content = %s, content_hash = %s, entry_hash = %s WHERE message_id = %s",
        text,
        content_hash,
        entry_hash,
        message.pk,
    )
    chain_again(conversation_id)
    for summary in Summary.objects.filter(conversation_id=conversation_id).order_by("depth", "summary_id"):
        _seal_again(summary)


def chain_again(conversation_id: int) -> None:
    """Compute the chain of a conversation again from the other hashes of its messages."""
    breaking(
        """
        UPDATE messages m SET chain_hash = again.chain_hash FROM (
            SELECT message_id, lcm_chain('', entry_hash, metadata_hash, record_hash, created_at, recorded_at)
                     OVER (PARTITION BY conversation_id ORDER BY seq) AS chain_hash
            FROM messages WHERE conversation_id = %s
        ) again WHERE again.message_id = m.message_id
        """,
        conversation_id,
    )
    breaking(
        """
        UPDATE conversations c SET chain_head = m.chain_hash FROM messages m
        WHERE m.conversation_id = c.conversation_id AND m.seq = c.next_seq - 1 AND c.conversation_id = %s
        """,
        conversation_id,
    )


def _seal_again(summary: Summary) -> None:
    sources = rows(
        """
        SELECT encode(m.content_hash, 'hex') FROM summary_messages l JOIN messages m USING (message_id)
        WHERE l.summary_id = %s ORDER BY l.ordinal
        """,
        [summary.pk],
    ) + rows(
        """
        SELECT encode(s.summary_hash, 'hex')
        FROM summary_parents l JOIN summaries s ON s.summary_id = l.parent_summary_id
        WHERE l.summary_id = %s ORDER BY l.ordinal
        """,
        [summary.pk],
    )
    sealed = hashing.summary_hash([source for (source,) in sources], summary.content)
    forging("summaries", "UPDATE summaries SET summary_hash = %s WHERE summary_id = %s", sealed, summary.pk)


def rewrite_act(audit_id: int, *, actor: str) -> None:
    """Let this act be somebody else's, and compute the whole chain of the audit log again."""
    breaking("UPDATE audit_log SET actor = %s WHERE audit_id = %s", actor, audit_id)
    link = b""
    for number, act in rows("SELECT number, audit_id FROM audit_chain ORDER BY number"):
        ((link,),) = rows("SELECT lcm_next_act(%s::bytea, a) FROM audit_log a WHERE a.audit_id = %s", [link, act])
        breaking("UPDATE audit_chain SET chain_hash = %s WHERE number = %s", link, number)
    breaking("UPDATE audit_head SET chain_hash = %s", link)
