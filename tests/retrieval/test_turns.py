"""A turn appends and assembles in one transaction, and is the same however often it is sent."""

from __future__ import annotations

import pytest

from compaction.engine import CompactionEngine
from compaction.models import CompactionJob
from compaction.types import Reason
from conversations.errors import Invalid, StaleHead
from conversations.models import HeadMove, Message
from conversations.scope import Scope
from conversations.store.injected import wrapped
from conversations.types import NewMessage, Role
from integrity.retention.erasure import Erasures
from retrieval.agent_turns import Turns
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.integrity.erasing import erased

pytestmark = pytest.mark.django_db

# A turn that moves the head from 2 back to 1, and its key.
KEYED = {"head_seq": 1, "expected_seq": 2, "idempotency_key": "turn-17"}


def turns() -> Turns:
    return Turns.from_settings(Scope(a_workspace().pk))


def said(*texts: str) -> list[NewMessage]:
    return [NewMessage(Role.USER, text) for text in texts]


def test_a_turn_gives_the_context_with_what_it_appended():
    conversation_id = a_conversation("one", "two").conversation_id

    turn = turns().turn(conversation_id=conversation_id, messages=said("three"), expected_seq=2)

    assert [item.text for item in turn.context.items] == ["one", "two", "three"]
    assert (turn.head_seq, turn.appended.messages[0].seq) == (3, 3)


def test_a_turn_without_new_messages_assembles():
    conversation_id = a_conversation("one").conversation_id

    turn = turns().turn(conversation_id=conversation_id, messages=[])

    assert (turn.appended, turn.head_seq, len(turn.context.items)) == (None, 1, 1)


def test_a_turn_may_go_on_from_an_earlier_message():
    conversation_id = a_conversation("one", "two", "three").conversation_id

    turn = turns().turn(conversation_id=conversation_id, messages=said("two, edited"), head_seq=1)

    assert [item.text for item in turn.context.items] == ["one", "two, edited"]
    assert turn.head_seq == 4


def test_the_same_turn_again_stores_and_moves_nothing():
    conversation_id = a_conversation("one", "two").conversation_id
    given = {"messages": said("again", "and again"), **KEYED, "context_format": "openai"}

    first, second = (turns().turn(conversation_id=conversation_id, **given) for _ in range(2))

    assert first.context.messages == second.context.messages
    assert [each.seq for each in second.appended.messages] == [3, 4]
    assert (HeadMove.objects.count(), Message.objects.count()) == (1, 4)


def test_a_turn_whose_response_was_lost_stays_before_what_is_sent_with_it_again():
    conversation_id = a_conversation("one", "two").conversation_id
    edited, answered = (NewMessage(Role.USER, text, idempotency_key=text) for text in ("edited", "answered"))
    turns().turn(conversation_id=conversation_id, messages=[edited], head_seq=1)

    turn = turns().turn(conversation_id=conversation_id, messages=[edited, answered], head_seq=1)

    assert [item.text for item in turn.context.items] == ["one", "edited", "answered"]


@pytest.mark.parametrize("seqs", [{"from_seq": 3, "to_seq": 3}, {}], ids=["a part", "everything"])
def test_a_turn_that_was_erased_is_the_same_when_sent_again(seqs):
    conversation_id = a_conversation("one", "two").conversation_id
    given = {"conversation_id": conversation_id, "messages": said("again", "and again"), **KEYED}
    turns().turn(**given)
    erased(Erasures.from_settings(), conversation_id, **seqs)
    say(conversation_id, *said("later"))

    again = turns().turn(**given)

    assert (again.head_seq, HeadMove.objects.count(), Message.objects.count()) == (5, 1, 5)


def test_a_turn_with_what_was_injected_is_the_same_when_sent_again():
    conversation_id = a_conversation("one", "two").conversation_id
    given = {"messages": said(wrapped("They met before."), "edited"), **KEYED}

    first, second = (turns().turn(conversation_id=conversation_id, **given) for _ in range(2))

    assert [[item.text for item in turn.context.items] for turn in (first, second)] == [["one", "edited"]] * 2
    assert [(each.seq, each.created) for each in second.appended.messages] == [(3, False)]
    assert HeadMove.objects.count() == 1


def test_a_turn_of_what_was_injected_alone_moves_the_head_once():
    conversation_id = a_conversation("one", "two").conversation_id
    given = {"messages": said(wrapped("They met before.")), **KEYED}

    first, second = (turns().turn(conversation_id=conversation_id, **given) for _ in range(2))

    assert (first.head_seq, second.head_seq, HeadMove.objects.count()) == (1, 1, 1)
    assert Message.objects.count() == 2


def test_the_budget_of_a_turn_decides_when_the_conversation_is_compacted():
    conversation_id = a_conversation(*(f"message {n} " * 100 for n in range(20))).conversation_id
    assert not CompactionJob.objects.exists()

    turns().turn(conversation_id=conversation_id, messages=[], budget=5000, reserve=1000)

    assert CompactionJob.objects.get().reason == Reason.THRESHOLD
    assert a_store().get_conversation(conversation_id=conversation_id).overrides == {"model_token_budget": 4000}
    CompactionEngine.from_settings().compact(conversation_id=conversation_id, reason=Reason.THRESHOLD)
    context = turns().turn(conversation_id=conversation_id, messages=said("more"), budget=5000, reserve=1000).context
    assert context.items[0].kind == "summary" and context.left_out.messages == 0


@pytest.mark.parametrize(("overrides", "budget"), [({}, 20_001), ({"model_token_budget": 5000}, 6000)])
def test_a_turn_does_not_raise_the_budget_of_the_site_or_the_conversation(settings, overrides, budget):
    settings.LCM = {**settings.LCM, "model_token_budget": 20_000}
    conversation_id = a_conversation("one", "two", overrides=overrides).conversation_id

    context = turns().turn(conversation_id=conversation_id, messages=[], budget=budget).context

    assert context.budget == budget
    assert a_store().get_conversation(conversation_id=conversation_id).overrides == overrides


def test_a_turn_lowers_the_budget_of_the_conversation_and_a_later_one_does_not_raise_it_again():
    conversation_id = a_conversation("one", overrides={"model_token_budget": 9000}).conversation_id

    for budget in (8000, 8500):
        turns().turn(conversation_id=conversation_id, messages=[], budget=budget)

    assert a_store().get_conversation(conversation_id=conversation_id).overrides == {"model_token_budget": 8000}


def test_a_budget_too_small_for_compaction_counts_for_its_turn_alone():
    conversation_id = a_conversation("one", "two").conversation_id

    context = turns().turn(conversation_id=conversation_id, messages=[], budget=10).context

    assert context.budget == 10
    assert a_store().get_conversation(conversation_id=conversation_id).overrides == {}


@pytest.mark.parametrize(
    ("given", "refusal"),
    [({"expected_seq": 1}, StaleHead), ({"budget": 10, "reserve": 20}, Invalid), ({"head_seq": 9}, Invalid)],
)
def test_of_a_turn_that_is_refused_nothing_is_left(given, refusal):
    conversation_id = a_conversation("one", "two").conversation_id

    with pytest.raises(refusal):
        turns().turn(conversation_id=conversation_id, messages=said("three"), **given)

    assert len(a_store().list_messages(conversation_id=conversation_id)) == 2
