"""A caller may give a content that is not the text of the parts: what only these say must still count and be found."""

from __future__ import annotations

import pytest

from conversations.content.flattening import text_beyond
from conversations.models import Message
from conversations.types import NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from tests.factories import a_conversation, a_store

pytestmark = pytest.mark.django_db

OUTPUT = "the quokka sits in enclosure seven\n" * 200
RESULT = NewPart(PartType.TOOL, tool_call_id="c", tool_output=OUTPUT, tool_status="completed")
CALL = NewPart(PartType.TOOL, tool_call_id="c", tool_name="find_wombat", tool_input={"path": "deep/inner_module.rs"})
THOUGHT = NewPart(PartType.REASONING, text_content="perhaps an echidna " * 100)


def append(*messages: NewMessage) -> int:
    conversation_id = a_conversation("hello").conversation_id
    a_store().append_messages(conversation_id=conversation_id, messages=messages)
    return conversation_id


@pytest.mark.parametrize("content", ["", "ok", "the quokka"])
def test_what_only_a_part_says_is_counted_and_found_and_the_content_comes_back_as_it_was(content):
    conversation_id = append(NewMessage(Role.TOOL, content, parts=(RESULT,)))

    message = a_store().list_messages(conversation_id=conversation_id)[-1]
    assert message.content == content
    assert message.parts[0].tool_output == OUTPUT
    assert message.token_count >= a_store().tokens.count(OUTPUT)
    assert Message.objects.filter(conversation_id=conversation_id).matching("enclosure").exists()
    assert IntegrityChecker.from_settings().run(conversation_id=conversation_id).is_clean


def test_a_call_that_the_content_does_not_mention_is_found_by_its_name_and_arguments():
    conversation_id = append(NewMessage(Role.ASSISTANT, "I will look.", parts=(CALL,)))

    for word in ("find_wombat", "inner_module"):
        assert Message.objects.filter(conversation_id=conversation_id).matching(word).exists()


def test_reasoning_costs_what_it_costs_and_is_not_found():
    conversation_id = append(NewMessage(Role.ASSISTANT, "Done.", parts=(THOUGHT,)))

    message = a_store().list_messages(conversation_id=conversation_id)[-1]
    assert message.token_count >= a_store().tokens.count(THOUGHT.text_content or "")
    assert not Message.objects.filter(conversation_id=conversation_id).matching("echidna").exists()


def test_what_the_content_says_already_is_not_counted_twice():
    conversation_id = append(NewMessage(Role.TOOL, OUTPUT, parts=(RESULT,)))

    message = a_store().list_messages(conversation_id=conversation_id)[-1]
    assert message.token_count == a_store().tokens.count(OUTPUT)


def test_a_flattened_call_is_known_again_in_the_content():
    text = 'Let me see.\n[tool_call find_wombat] {"path": "deep/inner_module.rs"}'

    assert text_beyond(text, [NewPart(PartType.TEXT, text_content="Let me see."), CALL]) == ""


def test_where_looking_would_take_long_nothing_is_left_out():
    parts = [NewPart(PartType.TEXT, text_content="x")] * 2000

    assert text_beyond("x" * 1_000_000, parts) == "\n".join(["x"] * 2000)
