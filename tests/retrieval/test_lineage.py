from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from compaction.engine import CompactionEngine
from conversations.errors import NotFound
from conversations.models import Summary, SummaryParent
from conversations.scope import Scope
from retrieval.engine import RetrievalEngine
from retrieval.types import LineageEdge, MessageSpan
from tests.factories import a_conversation, a_workspace

pytestmark = pytest.mark.django_db


def a_compacted_conversation(count: int) -> int:
    own = {"leaf_chunk_tokens": 1500, "condense_fan_in": 2}
    texts = (" ".join(f"Value {n}-{k} of service-{k} is {5000 + n * k}." for k in range(12)) for n in range(count))
    conversation_id = a_conversation(*texts, overrides=own).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    return conversation_id


def test_lineage_has_every_summary_and_every_link_and_says_which_are_active():
    conversation_id = a_compacted_conversation(80)

    lineage = RetrievalEngine.from_settings().lineage(conversation_id=conversation_id)

    assert {node.summary_id for node in lineage.nodes} == set(Summary.objects.values_list("summary_id", flat=True))
    assert set(lineage.edges) == {
        LineageEdge(summary_id=summary_id, source_id=source_id)
        for summary_id, source_id in SummaryParent.objects.values_list("summary_id", "source_id")
    }
    active = set(Summary.objects.active().values_list("summary_id", flat=True))
    assert {node.summary_id for node in lineage.nodes if node.active} == active
    assert len(lineage.nodes) > len(active)


def test_messages_that_are_still_raw_come_as_stretches():
    conversation_id = a_compacted_conversation(80)

    lineage = RetrievalEngine.from_settings().lineage(conversation_id=conversation_id)

    assert lineage.raw_messages == (MessageSpan(73, 80),)
    assert lineage.message_count == 80


def test_lineage_takes_the_same_number_of_queries_whatever_its_size():
    counts = []
    for size in (40, 120):
        conversation_id = a_compacted_conversation(size)
        with CaptureQueriesContext(connection) as queries:
            RetrievalEngine.from_settings().lineage(conversation_id=conversation_id)
        counts.append(len(queries))

    assert counts[0] == counts[1] <= 5


def test_another_workspaces_lineage_is_not_there():
    conversation_id = a_compacted_conversation(10)

    with pytest.raises(NotFound):
        RetrievalEngine.from_settings(Scope(a_workspace("theirs").pk)).lineage(conversation_id=conversation_id)
