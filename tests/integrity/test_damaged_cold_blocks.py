"""What cannot be read any more is said to be so, by name, by whoever would read it; whoever checks goes on."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO

import pytest

from conversations.audit import AuditLog
from conversations.cold_storage.archiving import archive_stretch
from conversations.cold_storage.cold_texts import ColdBlockDamaged
from conversations.models import ColdBlock, Message
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from integrity.ledgers import Ledgers
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation, a_store, say
from tests.integrity.breaking import breaking, found
from tests.integrity.erasing import scope

pytestmark = pytest.mark.django_db

OTHERS_BLOCK = (
    "UPDATE message_parts SET exact = json_build_object('cold_block_id', %s::bigint)"
    " WHERE message_id = (SELECT message_id FROM messages WHERE conversation_id = %s AND seq = 1)"
)


def a_cold_conversation(session_id: str = "a") -> tuple[int, int, int]:
    """Ten messages in two blocks, each with a part that has a text of its own, and the newest of them all hot."""
    conversation_id = a_conversation(session_id=session_id).conversation_id
    for texts in (range(1, 6), range(6, 11)):
        part = NewPart(PartType.TEXT, text_content="seven boats")
        said = [NewMessage(Role.USER, f"Boat {number}", parts=(part,)) for number in texts]
        first = say(conversation_id, *said).messages[0]
        archive_stretch(conversation_id, after_seq=first.seq - 1, log=AuditLog(scope()))
    say(conversation_id, "hot")
    blocks = ColdBlock.objects.filter(conversation_id=conversation_id).order_by("first_seq")
    return conversation_id, *blocks.values_list("pk", flat=True)


def damage(block: int) -> None:
    a_bit = "set_byte(packed, 20, get_byte(packed, 20) # 1)"
    breaking(f"UPDATE cold_blocks SET packed = {a_bit} WHERE cold_block_id = %s", block)


READERS: dict[str, Callable[[int], object]] = {
    "list_messages": lambda id: a_store().list_messages(conversation_id=id),
    "get_message": lambda id: a_store().get_message(
        message_id=Message.objects.get(conversation_id=id, seq=2).message_id
    ),
    "assemble": lambda id: ContextAssembler.from_settings(scope()).assemble(conversation_id=id, budget=10_000),
    "expand_range": lambda id: RetrievalEngine.from_settings(scope()).expand_range(
        conversation_id=id, from_seq=1, to_seq=3, include_messages=True
    ),
    "grep": lambda id: RetrievalEngine.from_settings(scope()).grep(conversation_id=id, query="boat", cold=True),
    "ledger": lambda id: Ledgers.from_settings(scope()).export(BytesIO(), name="it", conversation_id=id),
}


def test_every_reader_names_the_block_and_the_messages():
    conversation_id, first, _ = a_cold_conversation()
    damage(first)

    for name, read in READERS.items():
        with pytest.raises(ColdBlockDamaged) as refusal:
            read(conversation_id)
        assert not refusal.value.retryable, name
        where = f"Cold block {first}, which holds messages 1 to 5 of conversation {conversation_id}"
        assert where in refusal.value.detail, name
    # What lies in other blocks is read as before.
    listed = a_store().list_messages(conversation_id=conversation_id, after_seq=5)
    assert [message.content for message in listed] == [*(f"Boat {number}" for number in range(6, 11)), "hot"]


def test_a_live_verification_tells_of_the_block_and_its_messages_and_verifies_the_rest():
    _, (_, first, _), _ = [a_cold_conversation(name) for name in "abc"]
    damage(first)

    report = Ledgers.from_settings(scope()).verify_live()

    assert (report.conversations, report.counts.messages) == (3, 33)
    assert report.by_code == {"cold_block_damaged": 1, "content_hash_mismatch": 5, "part_hash_mismatch": 5}
    assert report.findings[0].detail.startswith(f"Cold block {first}, which holds messages 1 to 5")


@pytest.mark.parametrize("is_damaged", [True, False])
def test_a_check_finds_a_part_that_points_at_another_block_and_goes_on(is_damaged):
    conversation_id, _, second = a_cold_conversation()
    breaking(OTHERS_BLOCK, second, conversation_id)
    if is_damaged:
        damage(second)
    ids = [f"msg_{id}" for id in Message.objects.filter(seq__lt=11).order_by("seq").values_list("pk", flat=True)]

    report = IntegrityChecker.from_settings(scope()).run(conversation_id=conversation_id)

    expected = {ids[0], f"cold_{second}", *ids[5:]} if is_damaged else {ids[0]}
    assert {code: set(ids) for code, ids in found(report).items()} == {"cold_texts_match_their_hashes": expected}
    with pytest.raises(ColdBlockDamaged):
        a_store().list_messages(conversation_id=conversation_id, limit=1)


def test_a_block_that_is_not_there_is_told_by_readers_and_found_by_those_who_check():
    conversation_id, first, _ = a_cold_conversation()
    breaking("DELETE FROM cold_blocks WHERE cold_block_id = %s", first)

    with pytest.raises(ColdBlockDamaged, match=f"Cold block {first} is damaged: it is missing"):
        a_store().list_messages(conversation_id=conversation_id)
    report = IntegrityChecker.from_settings(scope()).run(conversation_id=conversation_id)
    verified = Ledgers.from_settings(scope()).verify_live(conversation_id=conversation_id)

    assert len(found(report)["cold_messages_point_at_their_block"]) == 5
    assert verified.by_code == {"cold_block_damaged": 1, "content_hash_mismatch": 5, "part_hash_mismatch": 5}
