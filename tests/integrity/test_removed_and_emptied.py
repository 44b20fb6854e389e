"""A row that was removed shows by what is left of it, and a row whose text left it holds no other."""

from __future__ import annotations

import pytest

from conversations.audit import AuditLog
from conversations.models import Message
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from integrity.repairs.quarantines import quarantine
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from lcmsite.access import keys
from retrieval.semantic.models import Embedder
from tests.factories import a_conversation, a_store, a_tool_result, a_workspace
from tests.integrity.breaking import breaking, checked
from tests.integrity.erasing import erased
from tests.integrity.repairing import a_plan

pytestmark = pytest.mark.django_db


@pytest.fixture
def erasure() -> str:
    """Messages 2 and 3 of a conversation of four are erased, and message 4 by another act."""
    conversation_id = a_conversation("one").conversation_id
    a_store().append_messages(
        conversation_id=conversation_id,
        messages=[
            NewMessage(Role.USER, "two", author="ada", idempotency_key="k", metadata={"a": 1}),
            a_tool_result("c1", "three"),
            NewMessage(Role.USER, "four"),
        ],
    )
    erasures = Erasures.from_settings(Scope(a_workspace().pk, actor="key 7"))
    preview, _ = erased(erasures, conversation_id, from_seq=2, to_seq=3)
    erased(erasures, conversation_id, from_seq=4, to_seq=4)
    assert checked() == {}
    return preview.erasure_id


@pytest.mark.parametrize(
    "change",
    [
        "messages SET content = 'forged' WHERE seq = 2",
        "messages SET metadata = '{\"a\": 2}' WHERE seq = 2",
        "messages SET exact = '{}' WHERE seq = 2",
        "messages SET author = 'eve' WHERE seq = 2",
        "messages SET idempotency_key = 'k' WHERE seq = 2",
        "message_parts SET tool_output = 'forged'",
        "message_parts SET text_content = 'forged'",
        "message_parts SET file_name = 'forged'",
    ],
)
def test_an_erased_row_that_holds_something_is_found(erasure, change):
    breaking(f"UPDATE {change}")

    assert list(checked()) == ["emptied_rows_hold_no_text"]


@pytest.mark.parametrize("taken", ["erased", "cold", "quarantined"])
def test_vectors_of_a_text_that_was_taken_away_are_found(taken):
    conversation_id = a_conversation("one", "two").conversation_id
    first, second = Message.objects.filter(conversation_id=conversation_id).order_by("seq").values_list("pk", flat=True)
    scope = Scope(a_workspace().pk, actor="key 7")
    if taken == "erased":
        erased(Erasures.from_settings(scope), conversation_id, from_seq=1, to_seq=1)
    elif taken == "cold":
        Retention.from_settings(scope).archive(conversation_id=conversation_id)
    else:
        quarantine(conversation_id, f"msg_{first}", reason="wrong", log=AuditLog(scope))
    embedder = Embedder.objects.create(url="http://host/v1", model="small", question_model="small", dimension=3)
    breaking(f"CREATE TABLE embedding_vectors_{embedder.pk} AS SELECT %s::bigint AS message_id", second)
    held = {"vectors_leave_with_their_texts": [f"msg_{second}"]} if taken == "cold" else {}
    assert checked() == held

    breaking(f"UPDATE embedding_vectors_{embedder.pk} SET message_id = %s", first)

    assert checked() == {"vectors_leave_with_their_texts": [f"msg_{first}"]}


@pytest.mark.parametrize("role", [role for role in Role if role != Role.TOOL])
def test_another_role_of_an_erased_message_that_had_no_author_is_found(erasure, role):
    breaking("UPDATE messages SET role = %s WHERE seq = 3", role)

    assert checked() == {"entries_match_their_hashes": [f"msg_{Message.objects.get(seq=3).pk}"]}


def test_another_act_of_an_erasure_and_a_removed_erasure_are_found(erasure):
    breaking("UPDATE messages SET erased_by_id = (SELECT erased_by_id FROM messages WHERE seq = 4) WHERE seq = 2")
    assert list(checked()) == ["texts_leave_by_recorded_acts"]

    breaking("DELETE FROM erasures WHERE erasure_id = %s", erasure)
    assert checked()["audited_rows_are_there"] == [erasure]


def test_a_cold_row_that_holds_a_text_is_found():
    conversation_id = a_conversation("one", "two").conversation_id
    a_store().append_messages(conversation_id=conversation_id, messages=[a_tool_result("c1", "three")])
    Retention.from_settings(Scope(a_workspace().pk, actor="key 7")).archive(conversation_id=conversation_id)
    assert checked() == {}

    breaking("UPDATE messages SET content = 'forged' WHERE seq = 1")
    breaking("UPDATE message_parts SET tool_output = 'forged'")

    names = checked()["emptied_rows_hold_no_text"]
    assert len(names) == 2
    assert {name.partition("_")[0] for name in names} == {"msg", "part"}


def test_a_quarantine_that_was_removed_is_found():
    conversation_id = a_conversation("one", "two").conversation_id
    quarantine(conversation_id, "file_x", reason="why", log=AuditLog(Scope(a_workspace().pk, actor="key 7")))

    breaking("DELETE FROM quarantines")
    breaking("UPDATE conversations SET quarantined = 0")

    assert checked() == {"audited_rows_are_there": ["file_x"]}
    plan = a_plan()
    assert (plan.steps, [each.id for each in plan.unplanned]) == ((), ["file_x"])


def test_a_key_that_was_removed_is_found():
    key = keys.issue(workspace_id=a_workspace().pk, name="agent")

    breaking("DELETE FROM api_keys")

    assert checked() == {"audited_site_rows_are_there": [f"key {key.record.api_key_id}"]}


@pytest.mark.parametrize("table", ["compaction_boundaries", "assembly_receipts", "erasures"])
def test_a_row_of_a_conversation_that_is_gone_is_found(table):
    conversation = a_conversation("one").conversation_id
    values = {
        "compaction_boundaries": "(conversation_id, host_reference, last_seq, metadata) VALUES (%s, 'x', 1, '{}')",
        "assembly_receipts": "(conversation_id, receipt_id, figures, lines) VALUES (%s, 'rcp_x', '{}', '[]')",
        "erasures": "(conversation_id, erasure_id, requested_by, expires_at, message_ids, file_ids, fingerprint,"
        " confirmation) VALUES (%s, 'era_x', 'ada', now(), '{}', '{}', '', '')",
    }
    breaking(f"INSERT INTO {table} {values[table]}", conversation + 1000)

    assert list(checked()) == ["rows_belong_to_something"]
