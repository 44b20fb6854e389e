"""What derives from what: the summaries of a conversation as a graph."""

from __future__ import annotations

import pytest

from compaction.hosts.host_service import HostCompaction
from conversations.types import SummaryKind
from retrieval.types import Lineage, LineageEdge, MessageSpan
from tests.factories import a_conversation, a_store
from tests.retrieval.lineages import engine
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def lineage(conversation_id: int) -> Lineage:
    return engine().lineage(conversation_id=conversation_id)


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
