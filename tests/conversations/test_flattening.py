from __future__ import annotations

import pytest

from conversations.content.flattening import flattened, searchable, texts_for_readers
from conversations.models import Message
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role
from integrity.checker import IntegrityChecker
from tests.conversations.appending import stored
from tests.factories import a_conversation, a_store, say

CALL = NewPart(PartType.TOOL, tool_name="grep", tool_input={"pattern": "für"})
RESULT = NewPart(PartType.TOOL, tool_output="3 matches")


def test_parts_stand_below_one_another_and_those_that_say_nothing_leave_no_line():
    empty = [NewPart(PartType.STEP_START), NewPart(PartType.TEXT, text_content="")]
    parts = [NewPart(PartType.TEXT, text_content="Let me look."), *empty, CALL, RESULT]

    assert flattened(parts) == 'Let me look.\n[tool_call grep] {"pattern": "für"}\n3 matches'
    assert flattened(empty) == ""


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (NewPart(PartType.TEXT, text_content="text"), "text"),
        (NewPart(PartType.RETRY, text_content="again"), "again"),
        (NewPart(PartType.TOOL, tool_name="ls"), "[tool_call ls] null"),
        (NewPart(PartType.TOOL, tool_name="ls", tool_input="{raw"), "[tool_call ls] {raw"),
        (NewPart(PartType.TOOL, tool_name="ls", tool_output=""), ""),
        (NewPart(PartType.TOOL, tool_name="ls", tool_input={}, tool_output="a"), "[tool_call ls] {}\na"),
        (NewPart(PartType.TOOL, tool_error="no such file"), "no such file"),
        (NewPart(PartType.PATCH, text_content="--- a"), "--- a"),
        (NewPart(PartType.PATCH, patch_files=("a.py", "b.py")), "[patch a.py b.py]"),
        (NewPart(PartType.FILE, file_name="a.pdf"), "[file a.pdf]"),
        (NewPart(PartType.FILE, file_url="data:,"), ""),
        (NewPart(PartType.FILE, file_name="a.txt", text_content="PORT"), "[file a.txt]\nPORT"),
        (NewPart(PartType.SUBTASK, subtask_prompt="look", subtask_desc="a look"), "look"),
        (NewPart(PartType.SUBTASK, subtask_desc="a look"), "a look"),
        (NewPart(PartType.REASONING, text_content="hmm"), ""),
        (NewPart(PartType.STEP_START), ""),
        (NewPart(PartType.STEP_FINISH, step_reason="done"), ""),
        (NewPart(PartType.SNAPSHOT, snapshot_hash="abc"), ""),
        (NewPart(PartType.AGENT, text_content="reviewer"), ""),
        (NewPart(PartType.COMPACTION, text_content="made room"), ""),
    ],
)
def test_each_part_type_says_what_can_be_read_of_it(part, text):
    assert flattened([part]) == text


SAYS = NewPart(PartType.TEXT, text_content="Let me look.")
THINKS = NewPart(PartType.REASONING, text_content="Where?")
MARK_OF_COMPACTION = NewPart(PartType.COMPACTION, is_synthetic=True, is_ignored=True, metadata={"run_id": "run_1"})


@pytest.mark.parametrize(
    ("content", "parts", "shown"),
    [
        ("Hello.", [], ["Hello."]),
        ("", [THINKS], ["[reasoning] Where?"]),
        ("", [NewPart(PartType.COMPACTION, text_content="So far.")], ["[compaction] So far."]),
        ("", [NewPart(PartType.REASONING)], ["[reasoning]"]),
        ("", [MARK_OF_COMPACTION], []),
        ("Let me look.", [THINKS, SAYS, CALL], ["[reasoning] Where?", "Let me look.", flattened([CALL])]),
        (flattened([SAYS, CALL]), [SAYS, CALL], ["Let me look.", flattened([CALL])]),
        ("3 matches", [RESULT], ["3 matches"]),
        ("In a.py: 3 matches", [CALL, RESULT], ["In a.py: 3 matches", flattened([CALL])]),
    ],
)
def test_readers_get_every_text_of_a_message_once(content, parts, shown):
    assert texts_for_readers(content, parts) == shown


class Copied(str):
    """A text that counts the characters of all copies that are made of it."""

    characters = 0


def counting(name):
    def copy(self, *given):
        made = Copied(getattr(str, name)(self, *given))
        Copied.characters += len(made)
        return made

    return copy


for name in ("strip", "lstrip", "rstrip", "removeprefix", "__getitem__"):
    setattr(Copied, name, counting(name))


@pytest.mark.parametrize("end", ["", " but not the end"])
def test_a_content_is_not_copied_for_each_of_many_parts(end, monkeypatch):
    parts = [NewPart(PartType.TEXT, text_content=f"part {number}") for number in range(500)]
    content = Copied("\n".join(part.text_content for part in parts) + end)
    monkeypatch.setattr(Copied, "characters", 0)

    shown = texts_for_readers(content, parts)

    assert shown == ([content] if end else [part.text_content for part in parts])
    assert 0 < Copied.characters < 3 * len(content)


def test_what_would_take_too_long_to_compare_is_shown_twice(monkeypatch):
    parts, content = [RESULT, CALL], "In a.py: 3 matches"
    monkeypatch.setattr("conversations.content.flattening.MOST_COMPARED", 2 * len(content) - 1)

    assert texts_for_readers(content, parts) == [content, "3 matches", flattened([CALL])]
    assert texts_for_readers(flattened(parts), parts) == ["3 matches", flattened([CALL])]


# A caller may give a content that is not the text of the parts: what only these have must be found and counted.
OUTPUT = "the quokka sits in enclosure seven\n" * 200
OUTPUT_PART = NewPart(PartType.TOOL, tool_call_id="c", tool_output=OUTPUT, tool_status="completed")
QUIET_CALL = NewPart(
    PartType.TOOL, tool_call_id="c", tool_name="find_wombat", tool_input={"path": "deep/inner_module.rs"}
)
THOUGHT = NewPart(PartType.REASONING, text_content="perhaps an echidna " * 100)


def in_a_conversation(message: NewMessage) -> MessageRecord:
    """The message as it is stored behind another."""
    conversation_id = a_conversation("hello").conversation_id
    say(conversation_id, message)
    return stored(conversation_id)[-1]


def found(message: MessageRecord, words: str) -> bool:
    return Message.objects.filter(message_id=message.message_id).matching(words).exists()


@pytest.mark.django_db
@pytest.mark.parametrize("content", ["", "ok", "the quokka"])
def test_what_only_a_part_says_is_counted_and_found_and_the_content_comes_back_as_it_was(content):
    message = in_a_conversation(NewMessage(Role.TOOL, content, parts=(OUTPUT_PART,)))

    assert message.content == content
    assert message.parts[0].tool_output == OUTPUT
    assert message.token_count >= a_store().tokens.count(OUTPUT)
    assert found(message, "enclosure")
    assert IntegrityChecker.from_settings().run(conversation_id=message.conversation_id).is_clean


@pytest.mark.django_db
def test_a_call_that_the_content_does_not_mention_is_found_by_its_name_and_arguments():
    message = in_a_conversation(NewMessage(Role.ASSISTANT, "I will look.", parts=(QUIET_CALL,)))

    for word in ("find_wombat", "inner_module"):
        assert found(message, word)


@pytest.mark.django_db
def test_reasoning_costs_what_it_costs_and_is_not_found():
    message = in_a_conversation(NewMessage(Role.ASSISTANT, "Done.", parts=(THOUGHT,)))

    assert message.token_count >= a_store().tokens.count(THOUGHT.text_content or "")
    assert not found(message, "echidna")


@pytest.mark.django_db
def test_what_the_content_says_already_is_not_counted_twice():
    message = in_a_conversation(NewMessage(Role.TOOL, OUTPUT, parts=(OUTPUT_PART,)))

    assert message.token_count == a_store().tokens.count(OUTPUT)


def test_a_flattened_call_is_known_again_in_the_content():
    text = 'Let me see.\n[tool_call find_wombat] {"path": "deep/inner_module.rs"}'

    assert searchable(text, [NewPart(PartType.TEXT, text_content="Let me see."), QUIET_CALL]) == text


def test_where_looking_would_take_long_nothing_is_left_out():
    content, parts = "x" * 1_000_000, [NewPart(PartType.TEXT, text_content="x")] * 2000

    assert searchable(content, parts) == "\n".join([content, *["x"] * 2000])
