"""What a vendor demands of a request, by its SDK's own types and beyond them."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from conversations.content.tokens import TokenEstimator
from lcmsite.gateway.surfaces import LIST_KEY, Surface
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.request_entries import parse_entries
from lcmsite.gateway.window.types import WindowRequest


@cache
def _adapter(surface: Surface) -> TypeAdapter[Any]:
    # Not imported above: the SDKs take longer to load than most tests to run.
    match surface:
        case Surface.MESSAGES:
            # Agents send what is in beta; these types know it, and all else.
            from anthropic.types.beta.message_create_params import MessageCreateParams as Request
        case Surface.CHAT:
            from openai.types.chat.completion_create_params import CompletionCreateParams as Request
        case Surface.RESPONSES:
            from openai.types.responses.response_create_params import ResponseCreateParams as Request
    return TypeAdapter(Request)


def entries_of(surface: Surface, body: bytes) -> list[dict[str, Any]]:
    return json.loads(body)[LIST_KEY[surface]]


def tokens_of(surface: Surface, body: bytes) -> int:
    """What a vendor would count."""
    found = parse_entries(surface, body, counter=RequestCounter(TokenEstimator("o200k_base")))
    assert isinstance(found, WindowRequest)
    return found.tokens


def check_request(surface: Surface, body: bytes) -> None:
    """Fails unless the vendor would take this request."""
    # With system, tools and the choice of one, as far as the types know their keys.
    _exhausted(_adapter(surface).validate_python(json.loads(body)))
    entries = entries_of(surface, body)
    match surface:
        case Surface.MESSAGES:
            _check_messages(entries)
        case Surface.CHAT:
            _check_chat(entries)
        case Surface.RESPONSES:
            _check_responses(entries)


def _check_messages(entries: list[dict[str, Any]]) -> None:
    assert entries[0]["role"] == "user"
    waiting: set[str] = set()
    before = None
    points = 1
    for place, entry in enumerate(entries):
        blocks = [block for block in entry["content"] if isinstance(block, dict)]
        points += sum("cache_control" in block for block in blocks)
        if entry["role"] == "system":
            assert before == "user"
            assert place + 1 == len(entries) or entries[place + 1]["role"] == "assistant"
        results = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
        assert results == waiting
        waiting = {block["id"] for block in blocks if block["type"] == "tool_use"}
        if entry["role"] == "assistant":
            assert before != "assistant"
            assert blocks and blocks[-1]["type"] not in ("thinking", "redacted_thinking")
        before = entry["role"]
    assert not waiting
    assert points <= 4


def _check_chat(entries: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for entry in entries:
        if entry["role"] == "tool":
            waiting.remove(entry["tool_call_id"])
            continue
        assert not waiting
        waiting = [call["id"] for call in entry.get("tool_calls") or ()]
    assert not waiting


def _check_responses(items: list[dict[str, Any]]) -> None:
    waiting: list[str] = []
    for place, item in enumerate(items):
        match item.get("type"):
            case "reasoning":
                follower = items[place + 1]
                assert follower.get("role") == "assistant" or follower["type"] == "function_call"
            case "function_call":
                waiting.append(item["call_id"])
            case "function_call_output":
                waiting.remove(item["call_id"])
            case _:
                assert not waiting
    assert not waiting


def _exhausted(value: Any) -> None:
    """Read iterables, which the types check lazily, to their end."""
    if isinstance(value, dict):
        for each in value.values():
            _exhausted(each)
    elif hasattr(value, "__iter__") and not isinstance(value, str | bytes):
        for each in value:
            _exhausted(each)
