"""What derives from a message or a summary."""

from __future__ import annotations

import pytest

from conversations.errors import NotFound
from conversations.scope import Scope
from retrieval.describing.lineage import ImpactLevel
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, a_workspace
from tests.statements import counted_statements
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def impact(id: str, **options):
    return RetrievalEngine.from_settings(Scope(a_workspace().pk)).impact(id=id, **options)


@pytest.fixture
def graph():
    """Messages 1 to 9: two leaves and a straggler in one condensed summary, a third leaf, both in a root; 9 raw."""
    number = a_conversation(*(f"message {seq} " * 5 for seq in range(1, 10))).conversation_id
    store = a_store()
    first = a_summary_of(store, number, seqs=[1, 2, 4])
    second = a_summary_of(store, number, seqs=[5, 6])
    middle = a_summary_of(store, number, seqs=[3], summaries=[first, second])
    third = a_summary_of(store, number, seqs=[7, 8])
    root = a_summary_of(store, number, summaries=[middle, third])
    return number, first, middle, root


def message(number: int, seq: int) -> str:
    return a_store().list_messages(conversation_id=number, after_seq=seq - 1, limit=1)[0].id


def test_a_message_reaches_the_context_through_everything_made_from_it(graph):
    number, first, middle, root = graph

    found = impact(message(number, 1))

    assert [(item.summary_id, item.distance, item.active) for item in found.items] == [
        (first.summary_id, -1, False),
        (middle.summary_id, -2, False),
        (root.summary_id, -3, True),
    ]
    assert found.levels == (
        ImpactLevel(1, 1, first.token_count, 0),
        ImpactLevel(2, 1, middle.token_count, 0),
        ImpactLevel(3, 1, root.token_count, 1),
    )
    assert (found.active, found.count, found.active_count, found.items_complete) == (False, 3, 1, True)
    assert found.tokens == first.token_count + middle.token_count + root.token_count


def test_a_straggler_reaches_what_was_made_from_it_directly(graph):
    number, _, middle, root = graph

    assert [item.summary_id for item in impact(message(number, 3)).items] == [middle.summary_id, root.summary_id]


def test_from_what_a_model_sees_itself_nothing_derives(graph):
    number, _, _, root = graph

    for id in (message(number, 9), root.summary_id):
        found = impact(id)

        assert (found.active, found.count, found.levels, found.items) == (True, 0, (), ())


def test_all_are_counted_and_so_many_listed(graph):
    number, first, *_ = graph

    found = impact(message(number, 1), limit=1)

    assert [item.summary_id for item in found.items] == [first.summary_id]
    assert (found.count, len(found.levels), found.items_complete) == (3, 3, False)


def test_it_takes_as_many_questions_whatever_derives(graph):
    number, *_ = graph
    id = message(number, 1)
    engine = RetrievalEngine.from_settings()

    with counted_statements() as sent:
        engine.impact(id=id)

    assert len(sent) == 4


def test_what_names_neither_a_message_nor_a_summary_is_not_found(graph):
    foreign = a_conversation("secret", workspace=a_workspace("another"))
    store = a_store(a_workspace("another"))

    for id in (
        store.list_messages(conversation_id=foreign.conversation_id)[0].id,
        f"conv_{graph[0]}",
        "file_00ff00ff00ff00ff",
        "msg_01",
        "nothing",
    ):
        with pytest.raises(NotFound):
            impact(id)
