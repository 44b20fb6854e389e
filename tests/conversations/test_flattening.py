from __future__ import annotations

import pytest

from conversations.content.flattening import flattened
from conversations.types import NewPart, PartType

CALL = NewPart(PartType.TOOL, tool_name="grep", tool_input={"pattern": "für"})
RESULT = NewPart(PartType.TOOL, tool_output="3 matches")


def test_parts_stand_below_one_another_in_their_order():
    parts = [NewPart(PartType.TEXT, text_content="Let me look."), CALL, RESULT]

    assert flattened(parts) == 'Let me look.\n[tool_call grep] {"pattern": "für"}\n3 matches'


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


def test_parts_that_say_nothing_leave_no_empty_line():
    assert flattened([NewPart(PartType.STEP_START), RESULT, NewPart(PartType.TEXT, text_content="")]) == "3 matches"


def test_nothing_flattens_to_nothing():
    assert flattened([]) == ""
