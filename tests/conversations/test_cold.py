from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conversations.audit import Act, AuditLog
from conversations.cold_storage import archiving, cold_texts
from conversations.cold_storage.archiving import NotTheSame, archive_stretch, repack_without, thaw_block
from conversations.cold_storage.cold_texts import ColdBlockDamaged, messages_in, packed_hash
from conversations.models import AuditEntry, ColdBlock, Conversation, Message
from conversations.store.read import messages_of
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.appending import full_part, stored
from tests.conversations.strategies import json_of, texts
from tests.conversations.test_fidelity import HOSTILE
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, say
from tests.integrity.breaking import breaking
from tests.statements import counted_statements

pytestmark = pytest.mark.django_db

LOG = AuditLog()
WORDS = "There was some talk about the harbour and its boats. " * 10


def archived(conversation_id: int) -> int:
    """Archive all of it; how many messages moved."""
    count, after = 0, 0
    while (moved := archive_stretch(conversation_id, after_seq=after, log=LOG)) is not None:
        count, after = count + moved.messages, moved.last_seq
    return count


def thawed(conversation_id: int) -> int:
    count = 0
    while (moved := thaw_block(conversation_id, log=LOG)) is not None:
        count += moved.messages
    return count


def rows_as_they_are(conversation_id: int) -> list[Any]:
    """The rows of messages and parts to the last column, as the database writes them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT m::text FROM messages m WHERE conversation_id = %(id)s UNION ALL "
            "SELECT p::text FROM message_parts p JOIN messages m USING (message_id) WHERE conversation_id = %(id)s "
            "ORDER BY 1",
            {"id": conversation_id},
        )
        return cursor.fetchall()


def test_a_conversation_reads_the_same_cold_and_its_rows_are_the_same_once_it_is_thawed(conversation_id):
    say(
        conversation_id,
        NewMessage(Role.USER, WORDS, metadata={"b": 1.50, "a": [1e22, "\x00"]}),
        NewMessage(Role.ASSISTANT, parts=(full_part(), NewPart(PartType.STEP_START), full_part(PartType.FILE))),
        a_tool_call("c1", path="boats.txt"),
        a_tool_result("c1", "seven boats"),
        *(NewMessage(Role.USER, text) for text in HOSTILE.values()),
    )
    before, rows = stored(conversation_id), rows_as_they_are(conversation_id)

    moved = archived(conversation_id)
    while_cold = stored(conversation_id)
    one_by_one = [a_store().get_message(message_id=each.message_id) for each in before]
    back = thawed(conversation_id)

    assert moved == back == len(before)
    assert while_cold == one_by_one == before
    assert [repr(message) for message in while_cold] == [repr(message) for message in before]
    assert rows_as_they_are(conversation_id) == rows


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts, json_of(texts), st.dictionaries(texts, json_of(texts), max_size=3))
def test_anything_that_can_be_said_comes_back_from_the_cold(conversation_id, text, tool_input, metadata):
    part = NewPart(PartType.TOOL, tool_input=tool_input, metadata=metadata, text_content=text, file_url=text * 100)
    say(conversation_id, NewMessage(Role.TOOL, text, parts=(part,), metadata=metadata))
    before, rows = stored(conversation_id), rows_as_they_are(conversation_id)

    archived(conversation_id)
    while_cold = stored(conversation_id)
    thawed(conversation_id)

    assert while_cold == before
    assert rows_as_they_are(conversation_id) == rows


def test_what_is_cold_holds_no_text_in_its_rows_and_keeps_place_role_tokens_and_hashes(conversation_id):
    say(conversation_id, NewMessage(Role.USER, "a secret word", parts=(full_part(),), metadata={"a": "secret"}))
    kept = ("message_id", "seq", "role", "token_count", "content_hash", "entry_hash", "metadata_hash", "chain_hash")
    before = Message.objects.values_list(*kept).get()

    archived(conversation_id)

    row = Message.objects.get()
    assert Message.objects.values_list(*kept).get() == before
    assert (row.content, row.metadata, row.exact) == ("", {}, None)
    assert not Message.objects.filter(conversation_id=conversation_id).matching("secret").exists()
    assert not any("text_content" in text or "secret" in text for (text,) in rows_as_they_are(conversation_id))
    assert Conversation.objects.get(pk=conversation_id).cold_messages == 1


def test_what_is_said_after_it_went_cold_stands_beside_it(conversation_id):
    say(conversation_id, *(NewMessage(Role.USER, f"{WORDS} {n}", idempotency_key=f"{n}") for n in range(3)))
    archived(conversation_id)

    again = say(conversation_id, NewMessage(Role.USER, f"{WORDS} 1", idempotency_key="1"))
    say(conversation_id, "and this is new")
    a_store().create_message_parts(message_id=again.messages[0].message_id, parts=[full_part()])

    assert not again.messages[0].created
    messages = stored(conversation_id)
    assert [message.content for message in messages] == [*(f"{WORDS} {n}" for n in range(3)), "and this is new"]
    assert messages[1].parts[0].text_content == full_part().text_content
    assert Conversation.objects.get(pk=conversation_id).cold_messages == 3
    assert archived(conversation_id) == 1


def test_where_nothing_is_cold_nothing_more_is_asked_and_a_block_is_read_once_a_call(conversation_id):
    say(conversation_id, *(NewMessage(Role.USER, WORDS, parts=(full_part(),)) for _ in range(50)))
    with counted_statements() as hot:
        stored(conversation_id)

    archived(conversation_id)
    with counted_statements() as from_the_cold:
        stored(conversation_id)

    assert not any("cold_blocks" in statement for statement in hot)
    assert len(from_the_cold) == len(hot) + 1


def test_a_stretch_is_bounded_in_bytes(monkeypatch):
    large = a_conversation(*(f"{number:x}" * 100_000 for number in range(5))).conversation_id
    monkeypatch.setattr(archiving, "MOST_BYTES", 1_500)

    archived(large)

    assert ColdBlock.objects.filter(conversation_id=large).count() >= 2


@pytest.mark.parametrize(
    "wrong",
    [lambda each: replace(each, content=each.content[:-1]), lambda each: replace(each, exact=None)],
    ids=["another text", "keys in another order"],
)
def test_a_copy_that_is_not_the_same_is_refused_either_way_and_nothing_has_moved(conversation_id, monkeypatch, wrong):
    say(conversation_id, *(NewMessage(Role.USER, f"{n}: {WORDS}", metadata={"b": 1, "a": n}) for n in range(5)))
    rows = rows_as_they_are(conversation_id)
    honest = archiving.packed
    monkeypatch.setattr(archiving, "packed", lambda messages: honest(map(wrong, messages)))

    with pytest.raises(NotTheSame):
        archived(conversation_id)

    assert rows_as_they_are(conversation_id) == rows
    assert not ColdBlock.objects.exists()
    assert not AuditEntry.objects.exists()
    monkeypatch.setattr(archiving, "packed", honest)
    archived(conversation_id)
    opened = archiving._opened
    monkeypatch.setattr(archiving, "_opened", lambda row: {id: wrong(each) for id, each in opened(row).items()})
    with pytest.raises(NotTheSame):
        thawed(conversation_id)


def test_a_damaged_block_gives_no_text_rather_than_a_wrong_one(conversation_id):
    say(conversation_id, NewMessage(Role.USER, WORDS))
    archived(conversation_id)
    breaking("UPDATE cold_blocks SET packed = set_byte(packed, 20, get_byte(packed, 20) # 1)")

    with pytest.raises(ColdBlockDamaged, match=f"messages 1 to 1 of conversation {conversation_id}") as refusal:
        stored(conversation_id)

    assert (refusal.value.code, refusal.value.retryable) == ("cold_block_damaged", False)
    assert refusal.value.context["cold_block_id"] == ColdBlock.objects.get().pk
    assert messages_in(b"another", packed_hash(b"another")) == "it cannot be unpacked"
    assert messages_in(archiving.packed(()), packed_hash(b"another")) == "its bytes do not match its hash"


def test_texts_that_move_while_they_are_read_are_read_again(conversation_id, monkeypatch):
    ids = [each.message_id for each in say(conversation_id, *(NewMessage(Role.USER, WORDS) for _ in range(3))).messages]
    before = messages_of(ids)
    archived(conversation_id)
    read = cold_texts.ColdTexts.read
    times = []

    def thawed_just_now(self: Any, block_ids: Any) -> None:
        times.append(1)
        if len(times) == 1:
            with monkeypatch.context() as quiet:
                quiet.setattr(cold_texts.ColdTexts, "read", read)
                thawed(conversation_id)
        read(self, block_ids)

    monkeypatch.setattr(cold_texts.ColdTexts, "read", thawed_just_now)

    assert messages_of(ids) == before
    assert len(times) == 1


def test_messages_are_left_out_of_their_blocks_and_the_others_read_as_before(conversation_id):
    say(conversation_id, *(NewMessage(Role.USER, f"{n}: {WORDS}", parts=(full_part(),)) for n in range(150)))
    archived(conversation_id)
    before = stored(conversation_id)
    block_ids = list(ColdBlock.objects.order_by("pk").values_list("pk", flat=True))
    gone = [message.message_id for message in before[:100:7]]

    with transaction.atomic():
        AuditLog().record(Act.ERASE, conversation_id=conversation_id)
        Message.objects.filter(pk__in=gone).update(cold_block=None)
        left = repack_without(conversation_id, message_ids=set(gone), block_ids=block_ids)

    assert left == len(gone)
    kept = [message for message in before if message.message_id not in gone]
    assert messages_of([message.message_id for message in kept]) == kept
    # The block that held none of them is the one that was there.
    assert block_ids[1] in ColdBlock.objects.values_list("pk", flat=True)
    assert block_ids[0] not in ColdBlock.objects.values_list("pk", flat=True)
    assert Conversation.objects.get(pk=conversation_id).cold_messages == 150 - len(gone)


def test_blocks_are_small_and_every_move_is_in_the_audit_log(conversation_id):
    say(conversation_id, *(NewMessage(Role.USER, f"{n}: \x00 {WORDS}", metadata={"n": n}) for n in range(150)))

    archived(conversation_id)
    blocks = list(ColdBlock.objects.order_by("first_seq"))
    thawed(conversation_id)

    assert [(row.first_seq, row.last_seq, row.message_count) for row in blocks] == [(1, 100, 100), (101, 150, 50)]
    assert all(len(row.packed) < row.bytes_before / 5 for row in blocks)
    acts = AuditEntry.objects.order_by("audit_id").values_list("act", "target", "detail__messages")
    assert list(acts) == [
        ("archive", "seq 1 to 100", 100),
        ("archive", "seq 101 to 150", 50),
        ("thaw", "seq 1 to 100", 100),
        ("thaw", "seq 101 to 150", 50),
    ]


@pytest.mark.parametrize(
    "statement", ["UPDATE cold_blocks SET packed = ''", "TRUNCATE cold_blocks CASCADE", "DELETE FROM cold_blocks"]
)
def test_the_database_gives_no_block_away_that_a_message_needs(conversation_id, statement):
    say(conversation_id, NewMessage(Role.USER, WORDS))
    archived(conversation_id)

    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)
