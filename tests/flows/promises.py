"""What LCM promises of a conversation, looked up from outside by somebody who knows what was said in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from django.db import connection

from compaction.hosts.host_service import HostCompaction
from conversations.content.flattening import flattened
from conversations.store.conversations import ConversationStore
from conversations.types import ContextItemType, NewMessage, NewPart, Role
from retrieval.assembler import ContextAssembler
from retrieval.assembly.types import AssembledContext, AssemblyReason
from tests.flows.walk import assert_clean, everything_said

_MANDATORY = {AssemblyReason.SYSTEM, AssemblyReason.FRESH_TAIL, AssemblyReason.PINNED}
_COLUMNS = [each.name for each in fields(NewPart)]

# Summaries by the run that made them, beside what the run says that it made.
_CLAIMS = """
    SELECT coalesce(r.run_id, made.run_id), r.leaf_summaries, r.condensed_summaries, r.redone_summaries,
           coalesce(made.leaf, 0), coalesce(made.condensed, 0), coalesce(made.redone, 0)
    FROM (SELECT * FROM compaction_runs WHERE conversation_id = %(id)s) r
    FULL JOIN (
        SELECT run_id, count(*) FILTER (WHERE kind = 'leaf' AND supersedes_id IS NULL) AS leaf,
               count(*) FILTER (WHERE kind = 'condensed' AND supersedes_id IS NULL) AS condensed,
               count(*) FILTER (WHERE supersedes_id IS NOT NULL) AS redone
        FROM summaries WHERE conversation_id = %(id)s GROUP BY run_id
    ) made USING (run_id)
    WHERE (r.leaf_summaries, r.condensed_summaries, r.redone_summaries)
          IS DISTINCT FROM (coalesce(made.leaf, 0), coalesce(made.condensed, 0), coalesce(made.redone, 0))
"""
# A summary that no model made, or that has one below it which no model made, and does not say so; or the reverse.
_UNTRUE_MARKS = """
    SELECT s.summary_id, s.model, s.is_degraded FROM summaries s
    WHERE s.conversation_id = %(id)s AND s.is_degraded <> (s.model <> %(model)s OR EXISTS (
        SELECT FROM summary_parents p JOIN summaries source ON source.summary_id = p.parent_summary_id
        WHERE p.summary_id = s.summary_id AND source.is_degraded
    ))
"""


def found(statement: str, **values: object) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall()


def assert_sound(conversation_id: int) -> None:
    """No invariant is broken, and the database would let this moment be committed."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")
    assert_clean(conversation_id)
    assert HostCompaction.from_settings().verify_coverage(conversation_id=conversation_id).is_complete


def assert_runs_claim_what_they_wrote(conversation_id: int, *, model: str) -> None:
    """No run says that it made more summaries, or fewer, than there are of it; and each says truly who wrote it."""
    assert found(_CLAIMS, id=conversation_id) == []
    assert found(_UNTRUE_MARKS, id=conversation_id, model=model) == []


def assert_everything_comes_back(conversation_id: int, said: Sequence[NewMessage], *, token_cap: int) -> None:
    """Raw or below one summary, each message once, its content and its parts as they were given."""
    store = ConversationStore.from_settings()
    assert store.get_conversation(conversation_id=conversation_id).counters.message_count == len(said)
    stored = store.list_messages(conversation_id=conversation_id, limit=len(said) + 1)
    said_back = everything_said(conversation_id, token_cap=token_cap)
    back = sorted(((seq, content, given_values(parts)) for seq, content, parts in said_back), key=lambda each: each[0])
    given = [
        (seq, flattened(each.parts) if each.content is None else each.content, given_values(each.parts))
        for seq, each in enumerate(said, 1)
    ]
    assert back == given
    assert [(message.content, message.role) for message in stored] == [
        (content, each.role) for (_, content, _), each in zip(given, said, strict=True)
    ]


def given_values(parts: Sequence[NewPart]) -> list[dict[str, Any]]:
    """What was given of the parts; what compaction has added is none of it."""
    return [{name: getattr(part, name) for name in _COLUMNS} for part in parts if not part.is_synthetic]


def assert_what_must_be_raw_is(conversation_id: int, said: Sequence[NewMessage], *, fresh_tail_count: int) -> None:
    """System messages, the newest others, and the newest question of a user stand in the context word for word."""
    raw = set(raw_seqs(conversation_id))
    numbered = list(enumerate(said, 1))
    system = {seq for seq, each in numbered if each.role is Role.SYSTEM}
    spoken = [seq for seq, each in numbered if each.role is not Role.SYSTEM]
    questions = [seq for seq, each in numbered if each.role is Role.USER and not each.parts]
    assert system <= raw
    assert set(spoken[-fresh_tail_count:]) <= raw
    assert set(questions[-1:]) <= raw


def raw_seqs(conversation_id: int) -> list[int]:
    rows = found(
        "SELECT ordinal FROM context_items WHERE conversation_id = %(id)s AND message_id IS NOT NULL",
        id=conversation_id,
    )
    return [ordinal for (ordinal,) in rows]


def assert_assembled_within_budget(conversation_id: int, *, budget: int, query: str | None) -> AssembledContext:
    """What a model is shown costs no more than it may, unless what must be shown does; and it comes in order."""
    context = ContextAssembler.from_settings().assemble(conversation_id=conversation_id, budget=budget, query=query)
    count = ConversationStore.from_settings().tokens.count
    taken = [line for line in context.receipt if line.included]
    if context.over_budget:
        assert {line.reason for line in taken} <= _MANDATORY
    else:
        assert context.total_tokens <= budget
    assert context.over_budget == (context.total_tokens > budget)
    assert sum(count(item.text) for item in context.items) <= context.total_tokens
    assert context.total_tokens == sum(item.tokens for item in context.items) == sum(line.tokens for line in taken)
    assert [item.first_seq for item in context.items] == sorted(item.first_seq for item in context.items)
    shown = {item.first_seq for item in context.items if item.kind is ContextItemType.MESSAGE}
    system = found("SELECT seq FROM messages WHERE conversation_id = %(id)s AND role = 'system'", id=conversation_id)
    assert {seq for (seq,) in system} <= shown
    return context
