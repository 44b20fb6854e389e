"""Records of stored rows hold what their rows hold; whatever else is asked of them is as their class has it."""

from __future__ import annotations

import json
from dataclasses import asdict, fields

import pytest

from conversations.fast.records import every_field, record
from conversations.types import NewMessage, NewPart, PartRecord, PartType, Role
from lcmsite.catalogue.results import as_json
from tests.factories import a_conversation, a_store


@pytest.fixture
def stored() -> PartRecord:
    number = a_conversation().conversation_id
    part = NewPart(PartType.TOOL, tool_call_id="c1", tool_name="look", tool_input={"at": "the sea"})
    a_store().append_messages(conversation_id=number, messages=[NewMessage(Role.ASSISTANT, parts=(part,))])
    [message] = a_store().list_messages(conversation_id=number)
    return message.parts[0]


@pytest.mark.django_db
def test_a_stored_part_is_equal_to_one_that_was_told_every_value(stored):
    told = PartRecord(
        part_type=PartType.TOOL,
        tool_call_id="c1",
        tool_name="look",
        tool_input={"at": "the sea"},
        part_id=stored.part_id,
        message_id=stored.message_id,
        ordinal=0,
    )

    assert (stored, repr(stored), asdict(stored)) == (told, repr(told), asdict(told))
    assert (stored.patch_hash, stored.step_cost) == (None, None)


@pytest.mark.django_db
def test_an_answer_says_every_field_of_a_part_in_order(stored):
    said = json.loads(as_json(stored))

    assert list(said) == [each.name for each in fields(PartRecord)]
    assert said["tool_input"] == {"at": "the sea"} and said["tool_output"] is None


def test_every_field_of_a_record_is_there_once_and_in_order():
    short = record(PartRecord, {"part_type": PartType.TEXT, "ordinal": 3})

    values = every_field(short)

    assert list(values) == [each.name for each in fields(PartRecord)]
    assert (values["part_type"], values["ordinal"], values["part_id"]) == (PartType.TEXT, 3, "")
