"""An altered record, reference or file of a message is found; a quoted element is no finding."""

from __future__ import annotations

import json
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from conversations.cold_storage.cold_texts import packed_hash
from conversations.errors import Conflict, LcmError
from conversations.files.large_files import LargeFileService
from conversations.models import ColdBlock, FileReference, LargeFile
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from tests.conversations.ledger.ledgers import exported, the_ledgers, verified
from tests.factories import a_conversation, a_store, a_tool_result, a_workspace, say
from tests.integrity.breaking import breaking, broken, checked, forging
from tests.integrity.erasing import erased
from tests.integrity.repairing import a_ledger, a_plan, applied
from tests.integrity.rewriting import chain_again

LOG = "".join(f"2026-01-01T00:00:{n % 60:02d}Z INFO line {n} of the log\n" for n in range(2000))
RECORDS, REFERENCES = "records_match_their_hashes", "references_lead_to_their_files"


@dataclass(frozen=True)
class Sealed:
    """A conversation with all that a record seals, by the message that has it."""

    id: int
    moved: int
    plain: int
    tool: int
    other: int
    named: int
    file_id: str
    other_file_id: str
    named_file_id: str


def a_sealed_conversation() -> Sealed:
    conversation_id = a_conversation("one").conversation_id
    image = LargeFileService.from_settings().store(
        conversation_id=conversation_id, content=b"\x89PNG", file_name="a.png"
    )
    call = NewPart(PartType.TOOL, tool_call_id="c", tool_name="t", tool_input={"z": "1", "a": {"y": 2, "b": 3}})
    result = say(
        conversation_id,
        NewMessage(Role.USER, f"See <file name='a.log'>{LOG}</file> \x00", idempotency_key="k1", author="ada"),
        NewMessage(Role.USER, "two", metadata={"z": "1", "a": "2"}, idempotency_key="k\u00e92"),
        NewMessage(Role.ASSISTANT, parts=(call,)),
        a_tool_result("c", LOG.replace("INFO", "WARN")),
        NewMessage(Role.USER, parts=(NewPart(PartType.FILE, file_name="a.png", file_url=image.file_id),)),
    )
    ids = [each.message_id for each in result.messages]
    [file_id] = {each.file_id for each in result.moved if each.message_id == ids[0]}
    [other_file_id] = {each.file_id for each in result.moved if each.message_id == ids[3]}
    return Sealed(conversation_id, *ids, file_id, other_file_id, image.file_id)


@pytest.fixture(scope="module")
def made(module_rows: None, module_files: Path) -> Sealed:
    # Beside it another one, which no finding may ever name.
    a_sealed_conversation()
    return a_sealed_conversation()


@pytest.fixture
def sealed(made: Sealed, module_files: Path, settings: Any, tmp_path: Path) -> Sealed:
    """A sealed conversation, whose rows and files each test changes for itself alone."""
    settings.MEDIA_ROOT = shutil.copytree(module_files, tmp_path / "files")
    return made


# Each changes one row: which, whose message is found, and what finds it.
BOTH = {RECORDS, REFERENCES}
CORRUPTIONS = [
    ("DELETE FROM file_references WHERE message_id = {moved}", "moved", {RECORDS}),
    ("DELETE FROM file_references WHERE message_id = {named}", "named", {RECORDS}),
    ("UPDATE file_references SET message_id = {plain} WHERE message_id = {moved}", "moved", {RECORDS}),
    ("UPDATE file_references SET message_id = {plain} WHERE message_id = {moved}", "plain", BOTH),
    (
        "INSERT INTO file_references (message_id, file_id, field, start_at, length)"
        " VALUES ({plain}, '{file_id}', 'content', 0, 3)",
        "plain",
        BOTH,
    ),
    ("DELETE FROM large_files WHERE file_id = '{file_id}'", "moved", BOTH),
    ("DELETE FROM large_files WHERE file_id = '{named_file_id}'", "named", BOTH),
    ("UPDATE large_files SET content_hash = sha256('') WHERE file_id = '{file_id}'", "moved", BOTH),
    ("UPDATE large_files SET content_hash = sha256('') WHERE file_id = '{named_file_id}'", "named", {RECORDS}),
    ("UPDATE large_files SET byte_size = byte_size + 1 WHERE file_id = '{file_id}'", "moved", {REFERENCES}),
    (
        "UPDATE large_files f SET storage_uri = o.storage_uri, byte_size = o.byte_size, content_hash = o.content_hash"
        " FROM large_files o WHERE f.file_id = '{file_id}' AND o.file_id = '{other_file_id}'",
        "moved",
        BOTH,
    ),
    ("UPDATE message_parts SET exact = NULL WHERE message_id = {tool}", "tool", {RECORDS}),
    (
        "UPDATE file_references SET field = 'tool_error' WHERE message_id = {other} AND field = 'tool_output'",
        "other",
        BOTH,
    ),
    *(
        (f"UPDATE file_references SET {change} WHERE message_id = {{{whose}}}", whose, BOTH)
        for whose, change in (
            ("moved", "file_id = '{other_file_id}'"),
            ("moved", "start_at = start_at + 1"),
            ("moved", "length = length - 1"),
            ("named", "part_ordinal = 7"),
        )
    ),
    *(
        (f"UPDATE messages SET {change} WHERE message_id = {{{whose}}}", whose, {RECORDS})
        for whose, change in (
            ("moved", "idempotency_key = 'x'"),
            ("plain", "idempotency_key = NULL"),
            ("plain", "token_count = token_count + 1"),
            ("tool", "token_counter = 'cl100k_base'"),
            ("plain", "exact = NULL"),
            ("plain", """exact = '{{"metadata": {{"a": "2", "z": "1"}}}}'"""),
            ("tool", "record_hash = sha256('')"),
        )
    ),
    ("UPDATE messages SET record_hash = NULL WHERE message_id = {tool}", "tool", {"chains_are_unbroken"}),
]
WHOLE = f"See <file name='a.log'>{LOG}</file> \x00"


@pytest.mark.thorough
def test_every_altered_record_reference_and_file_is_found_and_nothing_wrong_is_read(sealed):
    assert checked() == {}
    for statement, whose, codes in CORRUPTIONS:
        # The sizes of files are counted anew, as in every ledger.
        is_size = codes == {REFERENCES}
        with broken(statement.format(**vars(sealed))) as touched:
            finds = {code for code, ids in checked().items() if f"msg_{getattr(sealed, whose)}" in ids}
            verified = the_ledgers().verify_live().by_code.keys()

            assert touched == 1, statement
            assert codes <= finds
            assert is_size or {"record_hash_mismatch", "chain_broken", "reference_mismatch"} & verified, statement
            # It is put together as it was sent, or not at all.
            try:
                content = a_store().get_message(message_id=sealed.moved, whole=True).content
            except LcmError as refusal:
                assert (refusal.code, type(refusal)) == ("damaged", Conflict), statement
                assert "lcm check" in refusal.detail
            else:
                assert content == WHOLE, statement
                assert whose != "moved" or is_size, statement


def test_a_file_whose_path_leads_to_other_bytes_is_not_put_together(sealed):
    forging(
        "large_files",
        "UPDATE large_files f SET storage_uri = o.storage_uri FROM large_files o"
        f" WHERE f.file_id = '{sealed.file_id}' AND o.file_id = '{sealed.other_file_id}'",
    )

    with pytest.raises(LcmError, match="not those that were stored") as refusal:
        a_store().get_message(message_id=sealed.moved, whole=True)

    assert refusal.value.code == "damaged"
    assert checked() == {"files_are_stored_whole": [sealed.file_id]}


def test_what_is_altered_beside_or_in_a_cold_text_is_found(sealed):
    assert Retention.from_settings().archive(conversation_id=sealed.id).messages >= 5
    assert checked() == {}
    for statement in (
        "UPDATE messages SET idempotency_key = 'x' WHERE message_id = {plain}",
        "UPDATE messages SET token_counter = 'cl100k_base' WHERE message_id = {tool}",
        "DELETE FROM file_references WHERE message_id = {moved}",
    ):
        with broken(statement.format(**vars(sealed))):
            assert "cold_texts_match_their_hashes" in checked()

    # Another order of keys within a block.
    [block] = ColdBlock.objects.filter(conversation_id=sealed.id)
    lines = [json.loads(line) for line in zlib.decompress(bytes(block.packed)).splitlines()]
    for line in lines:
        if line["message_id"] == sealed.plain:
            assert json.loads(line.pop("exact"))["metadata"] == {"z": "1", "a": "2"}
    packed = zlib.compress("".join(json.dumps(line) + "\n" for line in lines).encode("ascii"))
    written = "UPDATE cold_blocks SET packed = %s, packed_hash = %s WHERE cold_block_id = %s"
    forging("cold_blocks", written, packed, packed_hash(packed), block.pk)
    assert checked() == {"cold_texts_match_their_hashes": [f"msg_{sealed.plain}"]}


def test_what_is_altered_is_put_back_from_a_ledger(sealed):
    ledger = a_ledger(sealed)
    for statement in (
        "DELETE FROM file_references WHERE message_id = {moved}",
        "UPDATE message_parts SET exact = NULL WHERE message_id = {tool}",
    ):
        with broken(statement.format(**vars(sealed))):
            plan = applied(a_plan(ledger))

            assert [step.operation for step in plan.steps] == ["restore_from_ledger"], statement
            assert checked() == {}, statement


def test_a_lost_message_comes_back_with_its_files(sealed):
    ledger = a_ledger(sealed)
    for table in ("file_references", "context_items", "message_parts", "messages"):
        breaking(f"DELETE FROM {table} WHERE message_id = {sealed.moved}")

    applied(a_plan(ledger))

    assert checked() == {}
    [reference] = FileReference.objects.filter(file_id=sealed.file_id)
    assert a_store().get_message(message_id=reference.message_id, whole=True).content == WHOLE


def test_what_cannot_be_put_back_is_named_and_shown_as_it_is(sealed):
    breaking(f"DELETE FROM file_references WHERE message_id = {sealed.moved}")

    plan = a_plan()

    assert plan.steps == ()
    assert [(each.code, each.id) for each in plan.unplanned] == [(RECORDS, f"msg_{sealed.moved}")]


def as_stored_before(conversation_id: int) -> None:
    """Make a conversation one whose messages were stored before records were sealed."""
    breaking("UPDATE messages SET record_hash = NULL WHERE conversation_id = %s", conversation_id)
    chain_again(conversation_id)


def test_messages_from_before_stay_valid_and_those_behind_them_are_sealed(sealed):
    as_stored_before(sealed.id)
    say(sealed.id, NewMessage(Role.USER, "newer", idempotency_key="n"))

    assert checked() == {}
    assert verified(exported(sealed.id)).is_clean
    assert a_store().get_message(message_id=sealed.moved, whole=True).content == WHOLE

    breaking("UPDATE messages SET idempotency_key = 'x' WHERE idempotency_key = 'n'")
    assert [*checked()] == [RECORDS]


def test_of_messages_from_before_what_references_say_is_checked(sealed):
    as_stored_before(sealed.id)
    of_it = [statement for statement, whose, codes in CORRUPTIONS if whose == "moved" and codes == BOTH]
    for statement in of_it[::2]:
        with broken(statement.format(**vars(sealed))):
            assert f"msg_{sealed.moved}" in checked()[REFERENCES], statement
            with pytest.raises(Conflict, match="lcm check"):
                a_store().get_message(message_id=sealed.moved, whole=True)


# Which text is quoted, what stands behind it, and whether it is in a part.
QUOTATION = st.tuples(st.integers(0, 4), st.text(max_size=5), st.booleans())


@pytest.mark.thorough
@hypothesis_settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(st.lists(QUOTATION, min_size=1, max_size=4), st.booleans())
def test_whoever_quotes_an_element_is_not_suspected(sealed, quotations, is_old):
    content = a_store().get_message(message_id=sealed.moved).content
    element = content[content.index("<large_file") : content.index("</large_file>") + len("</large_file>")]
    quoted = (
        element,
        element[: len(element) // 2],
        element.replace(sealed.file_id, sealed.other_file_id),
        '<large_file id="file_0000000000000000" bytes="1" sha256="' + "0" * 64 + '">\n\n</large_file>',
        element.removesuffix("</large_file>"),
    )
    said = []
    for which, around, in_part in quotations:
        text = quoted[which] + around
        part = NewPart(PartType.TEXT, text_content=text)
        said.append(NewMessage(Role.ASSISTANT, parts=(part,)) if in_part else NewMessage(Role.USER, text))
    with transaction.atomic():
        appended = say(sealed.id, *said).messages
        if is_old:
            as_stored_before(sealed.id)

        assert checked() == {}
        assert the_ledgers().verify_live().is_clean
        for each in appended:
            shown = a_store().get_message(message_id=each.message_id)
            assert a_store().get_message(message_id=each.message_id, whole=True) == shown
        transaction.set_rollback(True)


def test_a_reference_that_leads_nowhere_or_to_another_workspace_is_found(sealed):
    breaking(f"UPDATE file_references SET message_id = 10000000 WHERE message_id = {sealed.moved}")
    assert checked()["rows_belong_to_something"] == ["msg_10000000"]

    theirs = a_conversation(workspace=a_workspace("theirs")).conversation_id
    breaking("UPDATE large_files SET conversation_id = %s WHERE file_id = %s", theirs, sealed.named_file_id)
    assert f"msg_{sealed.named}" in checked()[REFERENCES]


def test_an_erased_message_with_a_file_is_no_finding_and_has_nothing_to_put_together(sealed):
    erased(Erasures.from_settings(), sealed.id, message_ids=[sealed.moved, sealed.plain])

    assert checked() == {}
    assert verified(exported(sealed.id)).is_clean
    assert a_store().get_message(message_id=sealed.moved, whole=True).content == ""
    assert LargeFile.objects.get(pk=sealed.file_id).erased_by_id is not None
