"""Messages are shown as what they are: a call beside its result, a patch as a patch, an image as an image."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from conversations.types import MessageRecord, PartRecord, PartType, Role
from lcmsite.dashboard.parts.transcript_parts import LARGEST_IMAGE, MOST_CHARACTERS, Block, turns

PIXEL = "data:image/png;base64,iVBORw0KGgo="


def a_message(seq: int, *parts: PartRecord, role: Role = Role.ASSISTANT, content: str = "") -> MessageRecord:
    return MessageRecord(
        message_id=seq, conversation_id=1, seq=seq, role=role, content=content, token_count=1, token_counter="test",
        created_at=datetime(2026, 1, 1, tzinfo=UTC), content_hash="", chain_hash="", parts=parts,
    )  # fmt: skip


def a_part(kind: PartType, **values: Any) -> PartRecord:
    return PartRecord(kind, **values)


def a_call(call_id: str = "c1", **given: Any) -> PartRecord:
    return a_part(PartType.TOOL, tool_call_id=call_id, tool_name="read", tool_input=given, tool_status="pending")


def a_result(call_id: str = "c1", output: str = "found") -> PartRecord:
    return a_part(PartType.TOOL, tool_call_id=call_id, tool_output=output, tool_status="completed")


def blocks_of(*parts: PartRecord, content: str = "") -> tuple[Block, ...]:
    return turns([a_message(1, *parts, content=content)])[0].blocks


def test_a_message_without_parts_is_its_text():
    assert blocks_of(content="hello") == (Block("text", text="hello"),)
    assert blocks_of() == ()


def test_a_result_is_folded_into_its_call():
    call, result = turns([a_message(1, a_call(path="x")), a_message(2, a_result(), role=Role.TOOL)])

    (block,) = call.blocks
    assert (block.kind, block.title, block.text, block.status, block.result_seq) == (
        "tool", "read", "found", "completed", 2,
    )  # fmt: skip
    assert '"path": "x"' in block.given
    assert result.blocks == () and result.folded_into == 1


def test_a_result_whose_call_is_on_another_page_is_shown_by_itself():
    error = a_part(PartType.TOOL, tool_call_id="c", tool_error="no such file", tool_status="error")
    (turn,) = turns([a_message(7, a_result(), error, role=Role.TOOL)])

    assert turn.folded_into is None
    assert [(block.kind, block.text) for block in turn.blocks] == [("tool", "found"), ("tool", "no such file")]


def test_a_second_result_of_a_call_is_not_lost():
    first, second, third = turns([a_message(1, a_call()), a_message(2, a_result()), a_message(3, a_result(output="b"))])

    assert first.blocks[0].text == "found" and second.blocks == ()
    assert [block.text for block in third.blocks] == ["b"]


@pytest.mark.parametrize("text", ["diff --git a/x b/x\n+new\n-old", "@@ -1,2 +1,2 @@\n same\n+new\n-old"])
def test_a_patch_tells_what_came_in_and_what_went_out(text):
    (block,) = blocks_of(content=text)

    assert block.kind == "diff"
    assert {line.text: line.tone for line in block.lines if line.text in ("+new", "-old")} == {
        "+new": "in",
        "-old": "out",
    }


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        (PIXEL, "image"),
        ("data:image/svg+xml;base64,PHN2Zz4=", "file"),
        ("https://example.org/x.png", "file"),
        ("javascript:alert(1)", "file"),
        (PIXEL + "A" * LARGEST_IMAGE, "file"),
    ],
)
def test_only_a_small_picture_that_cannot_run_is_shown_as_one(url, kind):
    (block,) = blocks_of(a_part(PartType.FILE, file_url=url, file_mime="image/png", file_name="x.png"))

    assert block.kind == kind
    assert block.title == "x.png"


def test_reasoning_steps_and_subtasks_are_told_apart():
    kinds = blocks_of(
        a_part(PartType.REASONING, text_content="hm"),
        a_part(PartType.STEP_FINISH, step_reason="stop", step_tokens_out=7),
        a_part(PartType.SUBTASK, subtask_agent="tester", subtask_desc="run them"),
        a_part(PartType.COMPACTION, is_synthetic=True, is_ignored=True),
    )

    assert [(block.kind, block.title) for block in kinds] == [
        ("reasoning", ""),
        ("note", "step finish"),
        ("note", "subtask"),
    ]
    assert kinds[1].text == "stop · out 7"


def test_what_is_too_long_is_cut_and_says_where_all_of_it_is():
    long = "x" * (MOST_CHARACTERS + 1)

    call, _ = turns([a_message(1, a_call(text=long)), a_message(2, a_result(output=long), role=Role.TOOL)])
    note, reasoning, text = blocks_of(
        a_part(PartType.SUBTASK, subtask_prompt=long),
        a_part(PartType.REASONING, text_content=long),
        a_part(PartType.TEXT, text_content=long),
    )

    assert call.blocks[0].whole_in == ("msg_1", "msg_2")
    assert note.whole_in == reasoning.whole_in == text.whole_in == ("msg_1",)
    assert len(text.text) == MOST_CHARACTERS
    (whole,) = turns([a_message(1, a_call(text=long), a_part(PartType.TEXT, text_content=long))], most=None)
    assert [block.whole_in for block in whole.blocks] == [(), ()]
    assert whole.blocks[1].text == long and long in whole.blocks[0].given
