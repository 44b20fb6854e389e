"""Add LCM's tools to a request, and run the model's calls of them.

Names, schemas and descriptions are those of the MCP server. A call has the rights of the request's key.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from mcp_types import TextContent

from lcmsite.access.keys import caller_of_hash
from lcmsite.gateway.lookups.calls_of_answers import Call
from lcmsite.gateway.surfaces import Surface
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.json_spans import members
from lcmsite.mcp.calls import CallRunner
from lcmsite.mcp.tool_list import READING, TOOLS, tools

# Under any other tool_choice, the model cannot choose to look something up.
_FREE_CHOICES = (None, "auto", "any", "required")
_LEAST_TOKENS = 200
_NO_ROOM = "The window has no room for another lookup now: go on with what you have."


@cache
def _tools_json(surface: Surface) -> str:
    """Serialize the tools for an API, without the brackets of the list."""
    return json.dumps([_tool_row(surface, each) for each in tools(is_structured=False) if each.name in READING])[1:-1]


def _tool_row(surface: Surface, tool: Any) -> dict[str, Any]:
    named = {"name": tool.name, "description": tool.description}
    match surface:
        case Surface.MESSAGES:
            return {**named, "input_schema": tool.input_schema}
        case Surface.CHAT:
            return {"type": "function", "function": {**named, "parameters": tool.input_schema}}
        case Surface.RESPONSES:
            return {"type": "function", **named, "parameters": tool.input_schema, "strict": False}


def with_tools(surface: Surface, body: bytes) -> bytes | None:
    """Add LCM's tools to those of a request; None if the request cannot have them."""
    try:
        text = body.decode()
        found = members(text)
    except ValueError:
        return None
    values = {name: span.value for name, span in found.items()}
    choice = values.get("tool_choice")
    choice = choice.get("type") if isinstance(choice, dict) else choice
    own = values.get("tools")
    own = [] if own is None else own
    if choice not in _FREE_CHOICES or values.get("n") not in (None, 1) or not isinstance(own, list):
        return None
    if any(_tool_name(row).endswith("lcm_grep") for row in own):
        # The host already has LCM's tools, over MCP.
        return None
    if "tools" not in found:
        end = text.rindex("}")
        return f'{text[:end]}, "tools": [{_tools_json(surface)}]{text[end:]}'.encode()
    span = found["tools"]
    listed = f"{text[span.start : span.end - 1]}, " if own else "["
    return f"{text[: span.start]}{listed}{_tools_json(surface)}]{text[span.end :]}".encode()


def _tool_name(row: Any) -> str:
    function = row.get("function", row) if isinstance(row, dict) else {}
    return str(function.get("name") or "") if isinstance(function, dict) else ""


@cache
def _runner() -> CallRunner:
    return CallRunner()


@dataclass
class Lookups:
    """Runs calls of LCM's tools within the remaining tokens of the window (`room`)."""

    key_hash: bytes
    room: int
    counter: RequestCounter = field(default_factory=RequestCounter)
    runner: CallRunner = field(default_factory=_runner)

    async def run_call(self, call: Call, *, call_count: int) -> str:
        """Run a call; return its text within its share of half of the remaining tokens."""
        most = self.room // 2 // call_count
        if most < _LEAST_TOKENS:
            return _NO_ROOM
        given: Mapping[str, Any] = call.arguments if isinstance(call.arguments, dict) else {}
        found = await self.runner.run_operation(
            TOOLS[call.name], given, caller=lambda: caller_of_hash(self.key_hash), is_structured=False
        )
        text = "\n".join(each.text for each in found.content if isinstance(each, TextContent))
        return await asyncio.to_thread(self._shorten, text, most)

    async def spend(self, rows: Sequence[Any]) -> None:
        """Subtract the tokens of rows that were added to the request from `room`."""
        self.room -= await asyncio.to_thread(lambda: sum(self.counter.entry_tokens(row) for row in rows))

    def _shorten(self, text: str, most: int) -> str:
        tokens = self.counter.tokens(text)
        kept = len(text)
        short = text
        while kept and tokens > most:
            kept = kept * most // tokens * 9 // 10
            note = f"[LCM left out the other {len(text) - kept} characters of this answer: ask for less at once.]"
            short = f"{text[:kept]}\n{note}"
            tokens = self.counter.tokens(short)
        if text and not kept:
            return _NO_ROOM
        return short
