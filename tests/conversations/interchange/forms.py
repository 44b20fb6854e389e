"""The formats by name, and a row's way into a message and out again."""

from __future__ import annotations

import json
from typing import Any

from conversations.formats.anthropic import from_anthropic, to_anthropic
from conversations.formats.claude_code import from_claude_code, to_claude_code
from conversations.formats.codex import from_codex, to_codex
from conversations.formats.neutral import from_neutral, to_neutral
from conversations.formats.openai_chat import from_openai_chat, to_openai_chat
from conversations.formats.openai_responses import from_openai_responses, to_openai_responses
from conversations.formats.pi import from_pi, to_pi
from conversations.types import NewPart
from tests.conversations.records import as_stored

READ = {
    "neutral": from_neutral,
    "chat": from_openai_chat,
    "responses": from_openai_responses,
    "anthropic": from_anthropic,
    "claude_code": from_claude_code,
    "codex": from_codex,
    "pi": from_pi,
}
WRITE = {
    "chat": to_openai_chat,
    "responses": to_openai_responses,
    "anthropic": to_anthropic,
    "claude_code": to_claude_code,
    "codex": to_codex,
    "pi": to_pi,
}
AT = "2026-01-31T12:00:00.046Z"


def round_trip(form: str, row: dict[str, Any]) -> dict[str, Any]:
    if form == "neutral":
        record = as_stored(from_neutral(row), seq=row["seq"] + 1)
        return to_neutral(record, session_id=row["session_id"], first_seq=0)
    return WRITE[form](as_stored(READ[form](row)))


def comes_back(form: str, row: dict[str, Any]) -> bool:
    """Whether the row comes back with the same JSON: there, true is not 1, and 1 is not 1.0."""
    return json.dumps(round_trip(form, row), sort_keys=True) == json.dumps(row, sort_keys=True)


def columns_of(part: NewPart) -> dict[str, Any]:
    """The columns of a part that hold something, without the metadata."""
    return {name: value for name, value in vars(part).items() if value is not None and name != "metadata"}


def a_neutral(**changes: Any) -> dict[str, Any]:
    row = {
        "session_id": "s",
        "seq": 0,
        "role": "user",
        "content": "hello",
        "parts": [{"type": "text", "text": "hello"}],
        "created_at": "2026-01-31T12:00:00Z",
    }
    return row | changes


def a_chat_call(arguments: str) -> dict[str, Any]:
    call = {"id": "call_1", "type": "function", "function": {"name": "grep", "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def of_blocks(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def an_answer(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **more}


def of_pi(**message: Any) -> dict[str, Any]:
    return {"type": "message", "timestamp": AT, "message": {**message, "timestamp": 1769860800046}}


def a_pi_result(content: Any, *, is_error: bool = False) -> dict[str, Any]:
    return of_pi(role="toolResult", toolCallId="t1", toolName="read", isError=is_error, content=content)


def of_codex(**payload: Any) -> dict[str, Any]:
    return {"timestamp": AT, "type": "response_item", "payload": payload}


RESPONSES_CALL = {"type": "function_call", "call_id": "call_1", "name": "grep", "arguments": '{"pattern": "def "}'}
RESPONSES_RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "3 matches"}
RESPONSES_THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Looking for the parser"}],
    "content": None,
    "encrypted_content": "gAAAA",
}
ANTHROPIC_CALL = {"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"pattern": "def "}}
ANTHROPIC_THOUGHT = {"type": "thinking", "thinking": "Where is it?", "signature": "EqQB"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}
CLAUDE_CODE_LINE = {
    "parentUuid": None,
    "isSidechain": False,
    "sessionId": "7acd37a8",
    "type": "user",
    "message": {"role": "user", "content": "Read a.py."},
    "uuid": "c0ffee",
    "timestamp": AT,
}
CODEX_LINE = of_codex(type="message", role="user", content=[{"type": "input_text", "text": "Read a.py."}])
CODEX_META = {"timestamp": AT, "type": "session_meta", "payload": {"id": "01997e76", "cwd": "/"}}
PI_LINE = of_pi(role="user", content="Read a.py.")
PI_META = {"type": "session", "id": "d703a1a9", "timestamp": AT, "cwd": "/"}
