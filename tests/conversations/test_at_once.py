"""Several at once, each on a connection of its own, in a database that commits."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.db import transaction

from conversations.errors import Conflict, Invalid
from conversations.models import ContextItem, Summary
from conversations.store.journal import Journal
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.appending import (
    PART,
    WRITERS,
    assert_counters_are_recounts,
    at_once,
    keyed,
    message_ids,
    shown,
    stored,
)
from tests.factories import a_conversation, a_store, say
from tests.round_trip import assert_ledgers_survive
from tests.summaries import a_summary_of


@pytest.mark.parametrize(("rounds", "batch"), [(3, 3), pytest.param(12, 5, marks=pytest.mark.thorough)])
def test_writers_at_once_leave_no_gap_and_lose_nothing(committed_db, rounds, batch):
    conversation_id = a_conversation().conversation_id

    def write(writer: int) -> list[int]:
        seqs = []
        for turn in range(rounds):
            messages = [NewMessage(Role.USER, f"{writer} {turn} {n}", parts=(PART,)) for n in range(batch)]
            seqs += [message.seq for message in say(conversation_id, *messages).messages]
        return seqs

    told = at_once(write)

    total = WRITERS * rounds * batch
    messages = stored(conversation_id)
    assert [message.seq for message in messages] == list(range(1, total + 1))
    assert sorted(seq for seqs in told for seq in seqs) == list(range(1, total + 1))
    assert all(seqs == sorted(seqs) for seqs in told)
    assert {message.content for message in messages} == {
        f"{writer} {turn} {n}" for writer in range(WRITERS) for turn in range(rounds) for n in range(batch)
    }
    assert ContextItem.objects.filter(conversation_id=conversation_id).count() == total
    assert_counters_are_recounts(conversation_id)
    assert_ledgers_survive()


def test_writers_at_once_with_the_same_keys_store_each_message_once(committed_db):
    conversation_id = a_conversation().conversation_id

    def write(writer: int) -> list[tuple[int, bool]]:
        found = []
        for turn in range(4):
            result = say(conversation_id, keyed(f"a{turn}", f"a {turn}"), keyed(f"b{turn}", f"b {turn}"))
            found += [(message.message_id, message.created) for message in result.messages]
        return found

    told = at_once(write)

    assert len(stored(conversation_id)) == 8
    assert sum(created for each in told for _, created in each) == 8
    assert len({tuple(message_id for message_id, _ in each) for each in told}) == 1
    assert_counters_are_recounts(conversation_id)


def test_of_writers_at_once_with_one_key_and_different_texts_one_is_stored(committed_db):
    conversation_id = a_conversation().conversation_id

    def write(writer: int) -> str:
        try:
            say(conversation_id, keyed("k", f"text {writer}"))
        except Conflict:
            return "conflict"
        return f"text {writer}"

    told = at_once(write)

    (message,) = stored(conversation_id)
    assert sorted(told) == sorted([message.content] + ["conflict"] * (WRITERS - 1))


def test_a_price_the_database_cannot_hold_keeps_the_batch_out(committed_db):
    conversation_id = a_conversation().conversation_id
    part = NewPart(PartType.STEP_FINISH, step_cost=Decimal("0." + "1" * 20_000))

    with pytest.raises(Invalid):
        say(conversation_id, "good", NewMessage(Role.USER, "bad", parts=(part,)))

    assert stored(conversation_id) == []


def test_an_append_inside_a_transaction_goes_with_it(committed_db):
    conversation_id = a_conversation("before").conversation_id

    with pytest.raises(ZeroDivisionError), transaction.atomic():
        say(conversation_id, "lost")
        raise ZeroDivisionError

    say(conversation_id, "after")
    assert [(message.seq, message.content) for message in stored(conversation_id)] == [(1, "before"), (2, "after")]


def test_callers_at_once_open_one_conversation(committed_db):
    a_store()

    told = at_once(lambda caller: a_store().open_conversation(session_id="s-1").conversation_id)

    assert len(set(told)) == 1


def test_of_two_that_would_be_parents_of_each_other_one_is_refused(committed_db):
    def have_a_parent(caller: int) -> int | None:
        try:
            return a_store().open_conversation(session_id=pair[caller], parent_session_id=pair[1 - caller]).parent_id
        except Invalid:
            return None

    for number in range(10):
        pair = [a_conversation(session_id=f"{number} {each}").session_id for each in range(2)]
        assert None in at_once(have_a_parent, workers=2)


def test_adders_of_parts_at_once_get_ordinals_of_their_own(committed_db):
    conversation_id = a_conversation("hello").conversation_id
    (message_id,) = message_ids(conversation_id)

    def add(adder: int) -> None:
        for _ in range(2):
            a_store().create_message_parts(message_id=message_id, parts=[NewPart(PartType.STEP_START)] * 2)

    at_once(add, workers=4)

    assert [part.ordinal for part in a_store().get_message(message_id=message_id).parts] == list(range(16))


def test_summarizers_at_once_replace_a_range_once(committed_db):
    conversation_id = a_conversation(*"abcdefgh").conversation_id

    def summarize(worker: int) -> bool:
        try:
            a_summary_of(a_store(), conversation_id, seqs=range(1, 7))
        except Conflict:
            return False
        return True

    told = at_once(summarize, workers=4)

    assert sum(told) == 1
    assert Summary.objects.count() == 1
    assert [ordinal for ordinal, _ in shown(conversation_id)] == [1, 7, 8]
    assert_counters_are_recounts(conversation_id)


def test_hosts_at_once_keep_each_entry_of_a_journal_once(committed_db):
    conversation_id = a_conversation().conversation_id
    entries = [{"uuid": f"entry-{number}"} for number in range(300)]

    at_once(lambda _: Journal().append_entries(conversation_id=conversation_id, entries=entries))

    assert [each.entry for each in Journal().list_entries(conversation_id=conversation_id, limit=1000)] == entries
