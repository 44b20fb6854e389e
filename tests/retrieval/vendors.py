"""What the vendors of models demand of a list of messages: their own SDKs' types, and the rules beyond types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from lcmsite.catalogue.json_text import as_ascii_json
from retrieval.assembly.types import AssembledContext

_CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NAME = re.compile(r"[^\s<|\\/>]{1,64}")
_KEYS = {
    "system": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls"},
    "tool": {"role", "content", "tool_call_id"},
}


@cache
def _adapter(vendor: str) -> TypeAdapter[Any]:
    # Not imported above: the SDKs take longer to load than most tests to run, and every worker looks for all tests.
    from tests.retrieval.vendor_requests import REQUESTS

    return TypeAdapter(REQUESTS[vendor])


def _sent(value: Any) -> Any:
    """What arrives: JSON that is valid UTF-8."""
    return json.loads(as_ascii_json({"sent": value}).encode())["sent"]


def check_openai(context: AssembledContext) -> None:
    """Fails unless the chat completions API would take these messages."""
    messages = _sent(context.messages)
    _validate("openai", {"messages": messages})
    assert len(context.sources) == len(messages)
    assert context.system == ()
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        assert message.keys() <= _KEYS[message["role"]]
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert waiting == []
        assert message.get("content") or message.get("tool_calls")
        assert "name" not in message or _NAME.fullmatch(message["name"])
        for call in message.get("tool_calls", ()):
            assert len(call["id"]) <= 40
            assert call["id"] not in seen
            assert _TOOL.fullmatch((call.get("function") or call["custom"])["name"])
            seen.add(call["id"])
            waiting.append(call["id"])
    assert waiting == []
    _utf8(messages)


def check_openai_responses(context: AssembledContext) -> None:
    """Fails unless the Responses API would take these items as its input."""
    items = _sent(context.messages)
    _validate("openai_responses", {"input": items})
    assert len(context.sources) == len(items)
    assert context.system == ()
    seen: set[str] = set()
    waiting: list[tuple[str, str]] = []
    for place, item in enumerate(items):
        kind = item.get("type", "message")
        if kind == "reasoning":
            # A thought is taken with what it led to.
            assert items[place + 1].get("role") == "assistant" or items[place + 1]["type"].endswith(("_call", kind))
        elif kind.endswith("_call"):
            assert _CALL_ID.fullmatch(item["call_id"]) and _TOOL.fullmatch(item["name"])
            assert item["call_id"] not in seen
            seen.add(item["call_id"])
            waiting.append((f"{kind}_output", item["call_id"]))
        elif kind.endswith("_output"):
            assert (kind, item["call_id"]) == waiting.pop(0)
        else:
            assert waiting == []
            assert item["content"]
            # What a model has said is no input, and is no list of such.
            assert item["role"] != "assistant" or isinstance(item["content"], str)
    assert waiting == []
    _utf8(items)


def check_anthropic(context: AssembledContext) -> None:
    """Fails unless the Messages API would take this system text and these messages."""
    messages, system = _sent(context.messages), _sent(context.system)
    _validate("anthropic", {"messages": messages, "system": system})
    assert len(context.sources) == len(messages)
    assert [message["role"] for message in messages] == ["user", "assistant"] * (len(messages) // 2) + (
        ["user"] if len(messages) % 2 else []
    )
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        assert message.keys() == {"role", "content"}
        blocks = message["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        assert [block["type"] for block in blocks[: len(results)]] == ["tool_result"] * len(results)
        assert results == waiting
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        assert message["role"] == "assistant" or not waiting
        assert message["role"] == "user" or not results
        for call in (block for block in blocks if block["type"] == "tool_use"):
            assert _CALL_ID.fullmatch(call["id"])
            assert call["id"] not in seen
            assert _TOOL.fullmatch(call["name"])
            seen.add(call["id"])
        assert blocks
        assert blocks[-1]["type"] not in ("thinking", "redacted_thinking")
        _never_empty(blocks)
    assert waiting == []
    _never_empty(system)
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]
        assert last["type"] != "text" or last["text"] == last["text"].rstrip()
    _utf8([*messages, *system])


def _validate(vendor: str, value: Mapping[str, Any]) -> None:
    """By the SDK's types, and iterables, which those check lazily, to their end."""
    _exhausted(_adapter(vendor).validate_python(value))


def _exhausted(value: Any) -> None:
    if isinstance(value, Mapping):
        for each in value.values():
            _exhausted(each)
    elif isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for each in value:
            _exhausted(each)


def _never_empty(blocks: Sequence[Mapping[str, Any]]) -> None:
    for block in blocks:
        assert block["type"] != "text" or block["text"].strip()
        content = block.get("content")
        if block["type"] == "tool_result" and content is not None:
            assert content
            if not isinstance(content, str):
                _never_empty(content)
        assert not block.get("is_error") or content


def _utf8(messages: Sequence[Mapping[str, Any]]) -> None:
    assert json.dumps(messages, ensure_ascii=False).encode()


CHECKS = {"openai": check_openai, "openai_responses": check_openai_responses, "anthropic": check_anthropic}
