"""How a row shows its format and its session, and how a malformed one is refused."""

from __future__ import annotations

import pytest

from conversations.formats import READERS, TRANSCRIPTS, Format, detect, transcript_of
from conversations.types import Role
from tests.conversations.interchange.forms import (
    AT,
    CLAUDE_CODE_LINE,
    CODEX_LINE,
    CODEX_META,
    PI_LINE,
    PI_META,
    READ,
    RESPONSES_CALL,
    RESPONSES_RESULT,
    RESPONSES_THOUGHT,
    a_neutral,
    an_answer,
    of_blocks,
    of_pi,
)

CLAUDE_CODE, CODEX, PI = TRANSCRIPTS


@pytest.mark.parametrize(
    ("row", "format"),
    [
        ({"role": "user", "content": "x", "parts": []}, Format.NEUTRAL),
        ({"role": "user", "content": "x", "seq": 0}, Format.NEUTRAL),
        ({"role": "assistant", "tool_calls": []}, Format.OPENAI_CHAT),
        ({"role": "developer", "content": "x"}, Format.OPENAI_CHAT),
        (of_blocks({"type": "text", "text": "x"}, {"type": "image_url"}), Format.OPENAI_CHAT),
        (of_blocks({"type": "tool_result", "tool_use_id": "1"}), Format.ANTHROPIC),
        (of_blocks({"type": "thinking"}, {"type": "text", "text": "x"}, role="assistant"), Format.ANTHROPIC),
        (RESPONSES_CALL, Format.OPENAI_RESPONSES),
        (RESPONSES_RESULT, Format.OPENAI_RESPONSES),
        (RESPONSES_THOUGHT, Format.OPENAI_RESPONSES),
        ({"type": "local_shell_call"}, Format.OPENAI_RESPONSES),
        (of_blocks({"type": "input_text", "text": "x"}), Format.OPENAI_RESPONSES),
        (of_blocks({"type": "text", "text": "x"}), None),
        ({"role": "user", "content": [5, {"type": ["image"]}]}, None),
        ({"role": ["user"], "content": "x"}, None),
    ],
)
def test_a_message_shows_its_format_unless_all_formats_agree_on_it(row, format):
    assert detect(row) is format


def test_all_formats_agree_on_a_message_with_only_a_role_and_a_text():
    messages = [reader({"role": "user", "content": "x"}) for reader in READERS.values()]

    assert all((message.role, message.content, message.parts) == (Role.USER, "x", ()) for message in messages)


@pytest.mark.parametrize("row", [None, 5, "role", [], {}, {"messages": []}])
def test_anything_else_is_no_message(row):
    with pytest.raises(ValueError, match="not a message"):
        detect(row)


@pytest.mark.parametrize(
    ("line", "transcript", "session", "holds_message"),
    [
        (CLAUDE_CODE_LINE, CLAUDE_CODE, "7acd37a8", True),
        (CLAUDE_CODE_LINE | {"isSidechain": True, "agentId": "a28"}, CLAUDE_CODE, "7acd37a8:a28", True),
        (CLAUDE_CODE_LINE | {"isSidechain": True}, CLAUDE_CODE, "7acd37a8:sidechain", True),
        (CLAUDE_CODE_LINE | {"type": "api-request-blob"}, CLAUDE_CODE, "7acd37a8", False),
        ({"type": "summary", "summary": "A release", "leafUuid": "af93"}, CLAUDE_CODE, "", False),
        (CODEX_LINE, CODEX, "", True),
        (CODEX_META, CODEX, "01997e76", False),
        ({"timestamp": AT, "type": "compacted", "payload": {"message": "So far."}}, CODEX, "", True),
        (PI_LINE, PI, "", True),
        (PI_META, PI, "d703a1a9", False),
        (of_pi(role="system", content="", toolsAdded=[]), PI, "", False),
        ({"type": "custom_message", "timestamp": AT, "content": "Mind the gap."}, PI, "", True),
    ],
)
def test_a_line_shows_its_transcript_and_may_name_its_session(line, transcript, session, holds_message):
    assert transcript_of(line) is transcript
    assert (transcript.session_of(line), transcript.message_of(line) is not None) == (session, holds_message)


@pytest.mark.parametrize(
    "row",
    [
        None,
        {"role": "user", "content": "x"},
        {"type": "message", "role": "user", "content": "x", "sessionId": "s1", "messageId": "m1"},
        {"type": "message", "role": "user", "content": "x", "payload": {}, "timestamp": AT},
        {"type": "message", "message": "x", "timestamp": AT},
        {"type": "message", "message": {"role": "user"}},
        {"type": "response_item", "timestamp": AT, "payload": "x"},
        {"type": ["session"], "timestamp": AT},
        {"messages": [], "sessionId": "x"},
    ],
)
def test_other_rows_are_of_no_transcript(row):
    assert transcript_of(row) is None


NO_TIME = "timestamp must be a time as ISO 8601 writes it"
MALFORMED = [
    ("neutral", a_neutral(role="robot"), "role must be one of system, user, assistant, tool, not 'robot'."),
    ("neutral", a_neutral(content=None, parts=[]), "content must be a text where there are no parts."),
    ("neutral", a_neutral(parts=["hello"]), "parts[0] must be an object, not a text."),
    ("neutral", a_neutral(parts=[{"type": "hologram"}]), "parts[0].type must be one of text, reasoning"),
    ("neutral", a_neutral(parts=[{"type": "text", "text": True}]), "parts[0].text must be a text, not true or false."),
    ("neutral", a_neutral(parts=[{"type": "tool_result", "is_error": "no"}]),
     "parts[0].is_error must be true or false, not a text."),
    ("neutral", a_neutral(parts=[{"type": "patch", "patch_files": [1]}]),
     "parts[0].patch_files must be a list of texts."),
    ("neutral", a_neutral(parts=[{"type": "step_finish", "step_cost": "1e999999999"}]),
     "parts[0].step_cost must be a decimal number of sensible size."),
    ("neutral", a_neutral(created_at="yesterday"),
     "created_at must be a time as ISO 8601 writes it, not 'yesterday'."),
    ("neutral", a_neutral(created_at="0001-01-01T00:00:00+14:00"), "created_at must be a time as ISO 8601 writes it"),
    ("neutral", a_neutral(seq="1"), "seq must be a whole number, not a text."),
    ("neutral", [], "A message must be an object, not a list."),
    ("chat", {"role": "robot", "content": "x"},
     "role must be one of system, user, assistant, tool, developer, function"),
    ("chat", {"role": "user", "content": None}, "content must be given for the role user."),
    ("chat", {"role": "user", "content": {"text": "x"}}, "content must be a text or a list, not an object."),
    ("chat", {"role": "user", "content": ["x"]}, "content[0] must be an object, not a text."),
    ("chat", of_blocks({"type": "text"}), "content[0].text must be given."),
    ("chat", of_blocks({"type": "image_url", "image_url": "x"}),
     "content[0].image_url must be an object, not a text."),
    ("chat", {"role": "assistant", "tool_calls": [5]}, "tool_calls[0] must be an object, not a whole number."),
    ("chat", {"role": "assistant", "tool_calls": [{"id": "1"}]}, "tool_calls[0].function must be given."),
    ("chat", {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
     "tool_calls[0].function.arguments must be a text, not an object."),
    ("responses", {"role": "tool", "content": "x"}, "role must be one of user, assistant, system, developer"),
    ("responses", {"role": "user"}, "content must be a text or a list, not null."),
    ("responses", of_blocks({"type": "input_text"}), "content[0].text must be given."),
    ("responses", RESPONSES_CALL | {"arguments": {}}, "arguments must be a text, not an object."),
    ("responses", RESPONSES_THOUGHT | {"summary": [{"text": 5}]}, "summary[0].text must be a text"),
    ("responses", RESPONSES_RESULT | {"output": ["x"]}, "output[0] must be an object, not a text."),
    ("anthropic", {"role": "tool", "content": "x"}, "role must be one of user, assistant, system, not 'tool'."),
    ("anthropic", {"role": "user"}, "content must be a text or a list, not null."),
    ("anthropic", of_blocks({"type": "text"}), "content[0].text must be given."),
    ("anthropic", of_blocks(an_answer(["x"])), "content[0].content[0] must be an object, not a text."),
    ("anthropic", of_blocks(an_answer([{"type": "text", "text": 5}])), "content[0].content[0].text must be a text"),
    ("anthropic", of_blocks(an_answer("x", is_error="no")), "content[0].is_error must be true or false, not a text."),
    ("anthropic", of_blocks({"type": "image", "source": "x"}), "content[0].source must be an object, not a text."),
    ("claude_code", CLAUDE_CODE_LINE | {"timestamp": "noon"}, NO_TIME),
    ("claude_code", CLAUDE_CODE_LINE | {"message": {"role": "user", "content": 5}}, "content must be a text or a list"),
    ("codex", CODEX_LINE | {"payload": {"type": "message", "role": "user"}}, "content must be a text or a list"),
    ("codex", CODEX_LINE | {"type": "compacted", "payload": {"message": 5}}, "payload.message must be a text, not"),
    ("pi", PI_LINE | {"timestamp": "noon"}, NO_TIME),
    ("pi", of_pi(role="user", content=5), "content must be a text or a list, not a whole number."),
    ("pi", of_pi(role="assistant", content=[{"type": "toolCall", "id": 5}]), "content[0].id must be a text"),
    ("pi", of_pi(role="toolResult", content="x", isError="no"), "isError must be true or false, not a text."),
]  # fmt: skip


@pytest.mark.parametrize(("form", "row", "sentence"), MALFORMED)
def test_a_malformed_row_is_refused_with_the_name_of_its_field(form, row, sentence):
    with pytest.raises(ValueError) as refusal:
        READ[form](row)

    assert str(refusal.value).startswith(sentence)
