from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.errors import Invalid, NotFound
from conversations.large_files import LargeFileService
from conversations.scope import Scope
from conversations.types import SummaryKind
from retrieval.engine import RetrievalEngine
from retrieval.types import Description, ItemKind, MessageSpan
from tests.factories import a_conversation, a_store, a_workspace
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def describe(id: str) -> Description:
    return RetrievalEngine.from_settings().describe(id=id)


def a_small_lineage() -> tuple[int, list[str]]:
    """Six messages; 1 to 2 and 3 to 4 in leaves, both leaves in a condensed summary; 5 and 6 raw."""
    conversation_id = a_conversation(*(f"text number {n} " * 20 for n in range(1, 7))).conversation_id
    store = a_store()
    first = a_summary_of(store, conversation_id, seqs=[1, 2])
    second = a_summary_of(store, conversation_id, seqs=[3, 4])
    top = a_summary_of(store, conversation_id, summaries=[first, second])
    return conversation_id, [first.summary_id, second.summary_id, top.summary_id]


def message_id(conversation_id: int, seq: int) -> str:
    return a_store().list_messages(conversation_id=conversation_id, after_seq=seq - 1, limit=1)[0].id


def test_a_summary_tells_its_lineage_in_both_directions():
    _, (first, second, top) = a_small_lineage()

    of_top, of_first = describe(top), describe(first)

    assert (of_top.kind, of_top.summary_kind, of_top.depth) == (ItemKind.SUMMARY, SummaryKind.CONDENSED, 1)
    assert of_top.sources == (first, second)
    assert of_top.derived == ()
    assert of_top.active
    assert (of_top.first_seq, of_top.last_seq, of_top.message_count) == (1, 4, 4)
    assert of_first.derived == (top,)
    assert not of_first.active
    assert of_first.source_messages == (MessageSpan(1, 2),)


def test_a_summarys_manifest_says_what_opening_each_node_below_costs():
    conversation_id, (first, second, top) = a_small_lineage()
    tokens = [message.token_count for message in a_store().list_messages(conversation_id=conversation_id)]

    described = describe(top)

    assert [outline.summary_id for outline in described.manifest] == [first, second]
    assert [outline.opening_tokens for outline in described.manifest] == [sum(tokens[:2]), sum(tokens[2:4])]
    assert described.opening_tokens == sum(outline.token_count for outline in described.manifest)
    assert described.manifest_complete


def test_a_compacted_message_tells_the_way_up_to_the_active_summary():
    conversation_id, (first, _, top) = a_small_lineage()

    described = describe(message_id(conversation_id, 2))

    assert [outline.summary_id for outline in described.held_by] == [first, top]
    assert [outline.active for outline in described.held_by] == [False, True]
    assert not described.active


def test_a_raw_message_is_active_and_held_by_nothing():
    conversation_id, _ = a_small_lineage()

    described = describe(message_id(conversation_id, 5))

    assert described.active
    assert described.held_by == ()
    assert (described.kind, described.first_seq, described.last_seq) == (ItemKind.MESSAGE, 5, 5)


def test_a_file_is_described_without_its_bytes():
    conversation_id = a_conversation("hello").conversation_id
    file = LargeFileService.from_settings().store(
        conversation_id=conversation_id, content=b"a,b\n1,2\n", file_name="table.csv", mime_type="text/csv"
    )

    described = describe(file.file_id)

    assert (described.kind, described.file_name, described.byte_size) == (ItemKind.FILE, "table.csv", 8)
    assert described.exploration_summary


def test_an_id_is_found_in_the_text_that_a_model_quotes():
    _, (first, *_) = a_small_lineage()

    assert describe(f'<summary id="{first}" kind="leaf" depth="0">').id == first


@pytest.mark.parametrize("id", ["", "hello", "msg_", "run_0123456789abcdef", "msg_x", "\x00", "sum-1"])
def test_what_is_no_id_is_refused(id):
    with pytest.raises(Invalid) as refused:
        describe(id)

    assert refused.value.code == "bad_id"


@pytest.mark.parametrize(
    "id", ["sum_0123456789abcdef", "file_0123456789abcdef", "msg_999999", "msg_999999999999999999"]
)
def test_an_id_that_nothing_has_is_not_found(id):
    with pytest.raises(NotFound):
        describe(id)


def test_another_workspaces_things_are_not_there():
    conversation_id, (first, *_) = a_small_lineage()
    theirs = RetrievalEngine.from_settings(Scope(a_workspace("theirs").pk))

    for id in (first, message_id(conversation_id, 1)):
        with pytest.raises(NotFound):
            theirs.describe(id=id)


def test_a_description_takes_the_same_few_queries_whatever_lies_below():
    _, (first, _, top) = a_small_lineage()

    for id in (first, top):
        with CaptureQueriesContext(connection) as queries:
            describe(id)
        assert len(queries) <= 6
