"""The summaries of a conversation as a graph."""

from __future__ import annotations

import pytest

from compaction.hosts.host_service import HostCompaction
from conversations.errors import NotFound
from conversations.scope import Scope
from conversations.types import SummaryKind
from retrieval.engine import RetrievalEngine
from retrieval.types import LineageEdge, MessageSpan
from tests.factories import a_conversation, a_store, a_workspace
from tests.statements import counted_statements
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def lineage(conversation_id: int):
    return RetrievalEngine.from_settings(Scope(a_workspace().pk)).lineage(conversation_id=conversation_id)


def test_nodes_edges_and_what_is_still_raw_are_given():
    number = a_conversation(*(f"message {seq}" for seq in range(1, 11))).conversation_id
    store = a_store()
    first = a_summary_of(store, number, seqs=[1, 2])
    second = a_summary_of(store, number, seqs=[4, 5])
    root = a_summary_of(store, number, seqs=[3], summaries=[first, second])
    apart = a_summary_of(store, number, seqs=[7])

    with counted_statements() as sent:
        graph = RetrievalEngine.from_settings().lineage(conversation_id=number)

    assert len(sent) == 5

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


def test_every_message_is_counted_once():
    number = a_conversation(*(f"message {seq}" for seq in range(1, 31))).conversation_id
    store = a_store()
    leaves = [a_summary_of(store, number, seqs=range(start, start + 5)) for start in (1, 6, 11)]
    a_summary_of(store, number, summaries=leaves)

    graph = lineage(number)

    direct = sum(node.direct_messages for node in graph.nodes)
    raw = sum(span.count for span in graph.raw_messages)
    assert direct + raw == graph.message_count


def test_a_conversation_that_was_never_compacted_is_one_span():
    number = a_conversation("one", "two", "three").conversation_id

    graph = lineage(number)

    assert (graph.nodes, graph.edges, graph.raw_messages) == ((), (), (MessageSpan(1, 3),))


def test_an_empty_conversation_has_an_empty_lineage():
    assert lineage(a_conversation().conversation_id).raw_messages == ()


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
