"""The context of a past moment is what a model was shown then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from compaction.engine import CompactionEngine
from compaction.types import Outcome
from conversations.errors import Invalid, NotFound
from conversations.models import Conversation, Message, Summary
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from retrieval.assembler import ContextAssembler
from retrieval.assembly.types import AssembledContext, BudgetSource
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace, say
from tests.statements import counted_statements
from tests.summaries import a_summary_of

OVERRIDES = {"model_token_budget": 4000, "leaf_chunk_tokens": 900, "condense_fan_in": 2, "fresh_tail_count": 4}
BUDGETS = (None, 700, 2000)
QUERIES = (None, "what about topic7 and topic31")


@pytest.fixture
def assembler() -> ContextAssembler:
    return ContextAssembler.from_settings(Scope(a_workspace().pk))


def now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return cursor.fetchone()[0]


def as_shown(context: AssembledContext) -> list[tuple[Any, ...]]:
    return [(item.id, item.text, item.tokens, item.is_recalled) for item in context.items]


def all_of(assembler: ContextAssembler, conversation_id: int, **more: Any) -> dict[Any, Any]:
    return {
        (budget, query): as_shown(
            assembler.assemble(conversation_id=conversation_id, budget=budget, query=query, **more)
        )
        for budget in BUDGETS
        for query in QUERIES
    }


def grow(conversation_id: int, first: int, last: int) -> None:
    """Turns of one kind and another, with a tool call now and then."""
    messages: list[NewMessage] = []
    for n in range(first, last + 1):
        match n % 5:
            case 3:
                messages.append(a_tool_call(f"call_{n}", path=f"topic{n}.py"))
            case 4:
                messages.append(a_tool_result(f"call_{n - 1}", f"the file of topic{n - 1} " + "has words " * 8))
            case rest:
                berths = " ".join(f"Boat {n}-{berth} lies at berth {n * berth}." for berth in range(2, 14))
                text = f"Turn {n} speaks of topic{n} at port {5000 + n}. {berths}"
                messages.append(NewMessage(Role.USER if rest % 2 else Role.ASSISTANT, text))
    say(conversation_id, *messages)


@pytest.mark.thorough
def test_each_past_moment_is_shown_as_it_was(committed_db, assembler):
    conversation_id = a_conversation(overrides=OVERRIDES).conversation_id
    say(conversation_id, NewMessage(Role.SYSTEM, "Be careful."))
    engine = CompactionEngine.from_settings()
    by_seq: dict[int, Any] = {}
    by_time: dict[datetime, Any] = {}
    by_run: dict[str, Any] = {}

    def note() -> None:
        seen = all_of(assembler, conversation_id)
        by_seq[Conversation.objects.get(pk=conversation_id).next_seq - 1] = seen
        by_time[now()] = seen

    note()
    for first in range(1, 120, 15):
        grow(conversation_id, first, first + 14)
        note()
        for _ in range(2):
            result = engine.compact(conversation_id=conversation_id)
            note()
            if result.outcome is not Outcome.NOTHING_TO_DO and result.run_id:
                by_run[result.run_id] = by_time[max(by_time)]

    assert Summary.objects.filter(depth__gte=1).exists()
    assert len(by_seq) == 9
    assert len(by_run) >= 3
    for moments in (by_seq, by_time, by_run):
        for as_of, seen in moments.items():
            assert all_of(assembler, conversation_id, as_of=as_of) == seen, as_of


def test_a_summary_that_was_made_again_is_shown_from_then_on(committed_db, assembler, settings):
    conversation_id = a_conversation(overrides=OVERRIDES).conversation_id
    grow(conversation_id, 1, 40)
    engine = CompactionEngine.from_settings()
    engine.compact(conversation_id=conversation_id)
    with connection.cursor() as cursor:
        # As if a model had not been there: the database lets nobody change a summary.
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("UPDATE summaries SET is_degraded = true")
        cursor.execute("SET session_replication_role = origin")
    before, earlier = all_of(assembler, conversation_id), now()

    redone = engine.redo(conversation_id=conversation_id)

    after = all_of(assembler, conversation_id)
    assert redone.redone_summaries > 0
    assert Summary.objects.filter(supersedes__isnull=False).exists()
    assert after != before
    assert all_of(assembler, conversation_id, as_of=earlier) == before
    assert all_of(assembler, conversation_id, as_of=redone.run_id) == after
    assert all_of(assembler, conversation_id, as_of=40) == after


def test_before_anything_was_said_there_is_nothing(db, assembler):
    conversation_id = a_conversation("hello", "hi").conversation_id

    for as_of in (0, "0", "2001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00"):
        context = assembler.assemble(conversation_id=conversation_id, as_of=as_of)

        assert context.items == ()
        assert context.as_of.last_seq == 0


def test_a_time_to_come_is_the_present(db, assembler):
    conversation_id = a_conversation("hello", "hi").conversation_id

    context = assembler.assemble(conversation_id=conversation_id, as_of=datetime.now(UTC) + timedelta(days=1))

    assert [item.text for item in context.items] == ["hello", "hi"]
    assert context.as_of.last_seq == 2


def test_messages_of_a_past_that_the_caller_dates_count_from_when_they_were_recorded(committed_db, assembler):
    old = NewMessage(Role.USER, "from long ago", created_at=datetime(1999, 1, 1, tzinfo=UTC))
    conversation_id = a_conversation("hello").conversation_id
    earlier = now()
    say(conversation_id, old)

    context = assembler.assemble(conversation_id=conversation_id, as_of=earlier)

    assert [item.text for item in context.items] == ["hello"]


def test_the_past_is_given_by_todays_settings_and_the_answer_says_so(db, assembler):
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 31))).conversation_id
    a_store().configure_conversation(conversation_id=conversation_id, overrides={"model_token_budget": 2000})

    past = assembler.assemble(conversation_id=conversation_id, as_of=20)
    present = assembler.assemble(conversation_id=conversation_id)

    assert (past.budget, past.budget_source) == (2000, BudgetSource.CONVERSATION)
    assert "current settings" in past.note
    assert present.note is None


def test_what_is_no_moment_of_the_conversation_is_refused(db, assembler):
    conversation_id = a_conversation("hello", "hi").conversation_id

    numbers, times = ["-1", -1, 3, "3", "01", True, 1.5, "9" * 100], ["2026-01-31", "2026-01-31T12:00:00"]
    for as_of in ("", "yesterday", *numbers, *times):
        with pytest.raises(Invalid, match="as_of"):
            assembler.assemble(conversation_id=conversation_id, as_of=as_of)


def test_a_run_of_another_conversation_is_not_found(db, assembler):
    other = a_conversation(overrides=OVERRIDES).conversation_id
    grow(other, 1, 40)
    run_id = CompactionEngine.from_settings().compact(conversation_id=other).run_id
    conversation_id = a_conversation("hello").conversation_id

    for unknown in (run_id, "run_0000000000000000"):
        with pytest.raises(NotFound):
            assembler.assemble(conversation_id=conversation_id, as_of=unknown)


@pytest.mark.thorough
def test_a_past_moment_costs_few_statements_however_much_was_said(committed_db, assembler):
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 801))).conversation_id
    for first in range(1, 700, 7):
        a_summary_of(a_store(), conversation_id, seqs=range(first, first + 7))

    with counted_statements() as present:
        assembler.assemble(conversation_id=conversation_id, budget=2000)
    with counted_statements() as past:
        context = assembler.assemble(conversation_id=conversation_id, budget=2000, as_of=799)

    assert context.items[-1].first_seq == 799
    assert len(past) <= len(present) + 3


def test_a_long_raw_past_is_read_only_as_far_as_it_can_be_shown(db, assembler):
    store = a_store()
    conversation_id = a_conversation("Port the parser.").conversation_id
    store.append_messages(conversation_id=conversation_id, messages=[NewMessage(Role.SYSTEM, "Be careful.")])
    for start in range(0, 1200, 400):
        store.append_messages(
            conversation_id=conversation_id,
            messages=[NewMessage(Role.ASSISTANT, f"step {n} " + "word " * 20) for n in range(start, start + 400)],
        )
    last = Message.objects.filter(conversation_id=conversation_id).count()

    past = assembler.assemble(conversation_id=conversation_id, budget=1500, as_of=last)
    present = assembler.assemble(conversation_id=conversation_id, budget=1500)

    assert as_shown(past) == as_shown(present)
    assert past.receipt == present.receipt
    assert [item.text for item in past.items[:2]] == ["Port the parser.", "Be careful."]
