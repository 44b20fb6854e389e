"""What derives from what: the summaries of a conversation as a graph, and all that a message reaches."""

from __future__ import annotations

from typing import Any

import pytest

from compaction.hosts.host_service import HostCompaction
from conversations.errors import NotFound
from conversations.types import SummaryKind
from retrieval.describing.lineage import Impact, ImpactLevel
from retrieval.types import Lineage, LineageEdge, MessageSpan
from tests.factories import a_conversation, a_store, a_workspace
from tests.retrieval.lineages import a_graph, a_root_of, engine, message_id
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def graph() -> tuple[Any, ...]:
    graph = a_graph()
    return (*graph, a_root_of(graph))


def lineage(conversation_id: int) -> Lineage:
    return engine().lineage(conversation_id=conversation_id)


def impact(id: str, **options: int) -> Impact:
    return engine().impact(id=id, **options)


def test_nodes_edges_and_what_is_still_raw_are_given():
    number = a_conversation(*(f"message {seq}" for seq in range(1, 11))).conversation_id
    store = a_store()
    first = a_summary_of(store, number, seqs=[1, 2])
    second = a_summary_of(store, number, seqs=[4, 5])
    root = a_summary_of(store, number, seqs=[3], summaries=[first, second])
    apart = a_summary_of(store, number, seqs=[7])

    graph = lineage(number)

    assert [(node.summary_id, node.direct_messages, node.active) for node in graph.nodes] == [
        (root.summary_id, 1, True),
        (first.summary_id, 2, False),
        (second.summary_id, 2, False),
        (apart.summary_id, 1, True),
    ]
    assert set(graph.edges) == {
        LineageEdge(root.summary_id, first.summary_id),
        LineageEdge(root.summary_id, second.summary_id),
    }
    assert graph.raw_messages == (MessageSpan(6, 6), MessageSpan(8, 10))
    assert graph.message_count == 10
    assert graph.nodes[0].kind is SummaryKind.CONDENSED


def test_a_conversation_that_was_never_compacted_is_one_span():
    number = a_conversation("one", "two", "three").conversation_id

    graph = lineage(number)

    assert (graph.nodes, graph.edges, graph.raw_messages) == ((), (), (MessageSpan(1, 3),))


def test_somebody_elses_conversation_is_not_found():
    foreign = a_conversation("secret", workspace=a_workspace("another"))

    with pytest.raises(NotFound):
        lineage(foreign.conversation_id)


def test_boundaries_of_a_host_stand_in_the_order_of_what_they_cut_off():
    number = a_conversation(*(f"message {seq}" for seq in range(1, 11))).conversation_id
    hosts = HostCompaction.from_settings()
    hosts.record_boundary(conversation_id=number, host_reference="second", last_seq=8, metadata={"tokens": [1.5, "é"]})
    hosts.record_boundary(conversation_id=number, host_reference="first", last_seq=4)
    hosts.record_boundary(conversation_id=a_conversation("hello").conversation_id, host_reference="of another")

    graph = lineage(number)

    assert [(each.host_reference, each.last_seq, each.metadata) for each in graph.boundaries] == [
        ("first", 4, {}),
        ("second", 8, {"tokens": [1.5, "é"]}),
    ]
    assert list(graph.boundaries) == hosts.list_boundaries(conversation_id=number)


# -- impact


def test_a_message_reaches_the_context_through_everything_made_from_it(graph):
    number, first, _, middle, _, root = graph

    found = impact(message_id(number, 1))

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
    number, _, _, middle, _, root = graph

    assert [item.summary_id for item in impact(message_id(number, 3)).items] == [middle.summary_id, root.summary_id]


def test_from_what_a_model_sees_itself_nothing_derives(graph):
    number, *_, root = graph

    for id in (message_id(number, 9), root.summary_id):
        found = impact(id)

        assert (found.active, found.count, found.levels, found.items) == (True, 0, (), ())


def test_all_are_counted_and_so_many_listed(graph):
    number, first, *_ = graph

    found = impact(message_id(number, 1), limit=1)

    assert [item.summary_id for item in found.items] == [first.summary_id]
    assert (found.count, len(found.levels), found.items_complete) == (3, 3, False)


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
