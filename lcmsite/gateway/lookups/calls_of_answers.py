"""Extract tool calls from answers, and build the rows of their results. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from lcmsite.gateway.surfaces import Row, Surface, objects_in


class Call(NamedTuple):
    """One call of a tool by the model."""

    call_id: str
    name: str
    arguments: Any


def calls_in(surface: Surface, rows: Sequence[Row]) -> Iterator[Call]:
    """Yield the tool calls of an answer that the client has to run, in order."""
    for row in rows:
        match surface:
            case Surface.MESSAGES:
                for block in objects_in(row.get("content")):
                    if block.get("type") == "tool_use":
                        yield Call(str(block.get("id")), str(block.get("name")), block.get("input"))
            case Surface.CHAT:
                for call in objects_in(row.get("tool_calls")):
                    function = call.get("function") or {}
                    yield Call(str(call.get("id")), str(function.get("name")), _parse_json(function.get("arguments")))
            case Surface.RESPONSES:
                if row.get("type") in ("function_call", "custom_tool_call"):
                    yield Call(str(row.get("call_id")), str(row.get("name")), _parse_json(row.get("arguments")))


def result_rows(surface: Surface, results: Sequence[tuple[Call, str]]) -> list[dict[str, Any]]:
    """Build the rows that return the results of calls to the model."""
    match surface:
        case Surface.MESSAGES:
            return [{"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call.call_id, "content": text} for call, text in results
            ]}]  # fmt: skip
        case Surface.CHAT:
            return [{"role": "tool", "tool_call_id": call.call_id, "content": text} for call, text in results]
        case Surface.RESPONSES:
            return [{"type": "function_call_output", "call_id": call.call_id, "output": text} for call, text in results]


def sendable_rows(surface: Surface, rows: Sequence[Row]) -> list[Row]:
    """Return an answer's rows without empty texts, which a request may not contain."""
    if surface is not Surface.MESSAGES:
        return list(rows)
    return [
        {**row, "content": [block for block in row["content"] if block.get("type") != "text" or block.get("text")]}
        for row in rows
    ]


def _parse_json(text: Any) -> Any:
    try:
        return json.loads(text) if isinstance(text, str) and text else {}
    except (ValueError, RecursionError):
        return {}
