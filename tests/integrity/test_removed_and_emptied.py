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
from tests.factories import a_conversation, a_tool_result, a_workspace, say
from tests.integrity.breaking import breaking, checked
from tests.integrity.erasing import erased
from tests.integrity.repairing import a_plan

pytestmark = pytest.mark.django_db


OF_MESSAGES = (
    "content = 'forged'", "metadata = '{\"a\": 2}'", "exact = '{}'", "author = 'eve'", "idempotency_key = 'k'",
)  # fmt: skip
OF_PARTS = ("tool_output = 'forged'", "text_content = 'forged'", "file_name = 'forged'")
ROLES = [role for role in Role if role != Role.TOOL]


@pytest.fixture
def erasure() -> str:
    """What a user said in messages 2 to 6 is erased, with results of tools behind it, and the last by another act."""
    conversation_id = a_conversation("one").conversation_id
    said = [NewMessage(Role.USER, f"{n}", author="ada", idempotency_key=f"k{n}", metadata={"a": n}) for n in range(5)]
    results = [a_tool_result(f"c{n}", f"result {n}") for n in range(len(OF_PARTS) + len(ROLES))]
    say(conversation_id, *said, *results, "the last")
    erasures = Erasures.from_settings(Scope(a_workspace().pk, actor="key 7"))
    last = 2 + len(said) + len(results)
    preview, _ = erased(erasures, conversation_id, from_seq=2, to_seq=last - 1)
    erased(erasures, conversation_id, from_seq=last, to_seq=last)
    assert checked() == {}
    return preview.erasure_id


def test_erased_rows_that_hold_something_and_another_role_where_there_was_no_author_are_found(erasure):
    ids = dict(Message.objects.values_list("seq", "pk"))
    seqs = iter(range(2, len(ids)))
    holding, of_another_role = [], []
    for change, seq in zip(OF_MESSAGES, seqs, strict=False):
        breaking(f"UPDATE messages SET {change} WHERE seq = %s", seq)
        holding.append(f"msg_{ids[seq]}")
    for change, seq in zip(OF_PARTS, seqs, strict=False):
        breaking(f"UPDATE message_parts SET {change} WHERE message_id = %s", ids[seq])
        holding.append(f"part_{ids[seq]}_0")
    for role, seq in zip(ROLES, seqs, strict=False):
        breaking("UPDATE messages SET role = %s WHERE seq = %s", role, seq)
        of_another_role.append(f"msg_{ids[seq]}")

    assert {code: sorted(found) for code, found in checked().items()} == {
        "emptied_rows_hold_no_text": sorted(holding),
        "entries_match_their_hashes": sorted(of_another_role),
    }


def test_vectors_of_texts_that_were_taken_away_are_found():
    scope = Scope(a_workspace().pk, actor="key 7")
    erasing, cold, holding = (a_conversation("one", "two").conversation_id for _ in range(3))
    first, second = (
        dict(Message.objects.filter(seq=seq).values_list("conversation_id", "pk").order_by("pk")) for seq in (1, 2)
    )
    erased(Erasures.from_settings(scope), erasing, from_seq=1, to_seq=1)
    Retention.from_settings(scope).archive(conversation_id=cold)
    quarantine(holding, f"msg_{first[holding]}", reason="wrong", log=AuditLog(scope))
    embedder = Embedder.objects.create(url="http://host/v1", model="small", question_model="small", dimension=3)
    vectors = f"embedding_vectors_{embedder.pk}"
    breaking(f"CREATE TABLE {vectors} AS SELECT unnest(%s::bigint[]) AS message_id", [*second.values()])
    assert checked() == {"vectors_leave_with_their_texts": [f"msg_{second[cold]}"]}

    breaking(f"DELETE FROM {vectors}")
    breaking(f"INSERT INTO {vectors} SELECT unnest(%s::bigint[])", [*first.values()])

    [(code, found)] = checked().items()
    assert (code, sorted(found)) == (
        "vectors_leave_with_their_texts",
        sorted(f"msg_{message_id}" for message_id in first.values()),
    )


def test_another_act_of_an_erasure_and_a_removed_erasure_are_found(erasure):
    breaking("UPDATE messages SET erased_by_id = (SELECT max(erased_by_id) FROM messages) WHERE seq = 2")
    assert list(checked()) == ["texts_leave_by_recorded_acts"]

    breaking("DELETE FROM erasures WHERE erasure_id = %s", erasure)
    assert checked()["audited_rows_are_there"] == [erasure]


def test_a_cold_row_that_holds_a_text_is_found():
    conversation_id = a_conversation("one", "two").conversation_id
    say(conversation_id, a_tool_result("c1", "three"))
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


def test_rows_of_a_conversation_that_is_gone_are_found():
    gone = a_conversation("one").conversation_id + 1000
    values = {
        "compaction_boundaries": "(conversation_id, host_reference, last_seq, metadata) VALUES (%s, 'x', 1, '{}')",
        "assembly_receipts": "(conversation_id, receipt_id, figures, lines) VALUES (%s, 'rcp_x', '{}', '[]')",
        "erasures": "(conversation_id, erasure_id, requested_by, expires_at, message_ids, file_ids, fingerprint,"
        " confirmation) VALUES (%s, 'era_x', 'ada', now(), '{}', '{}', '', '')",
    }
    for table, row in values.items():
        breaking(f"INSERT INTO {table} {row}", gone)

    found = checked()
    assert (list(found), len(found["rows_belong_to_something"])) == (["rows_belong_to_something"], len(values))
