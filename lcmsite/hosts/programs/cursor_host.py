"""Cursor: hooks in `hooks.json`, LCM's tools in `mcp.json`.

LCM does not read Cursor's transcripts: each event adds its messages to the spool. Cursor passes a hook's text to its
model only when a session starts; a hook must print JSON or nothing.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from lcmsite.hosts.agent_host import Event, FilePlan, Host, Place
from lcmsite.hosts.rest_client import recalled

# Cursor moves longer texts to a file.
MOST_CHARACTERS = 9900
OPENING_TOKENS = 1000

EVENTS = (
    "sessionStart",
    "beforeSubmitPrompt",
    "afterAgentResponse",
    "afterShellExecution",
    "afterMCPExecution",
    "afterFileEdit",
    "preCompact",
    "stop",
    "sessionEnd",
)


class Cursor(Host):
    name = "cursor"
    title = "Cursor"
    program = "cursor"
    instructions = ""

    def own_folder(self, place: Place) -> Path:
        return place.home / ".cursor"

    def files(self, place: Place) -> list[FilePlan]:
        # Imported here, so that hooks do not load it.
        from lcmsite.hosts.file_edits import JsonDefault, JsonElement, JsonMember

        folder = self.own_folder(place)
        command = {"command": self.hook_command(place)}
        server = {"url": place.mcp_url, "headers": {"Authorization": f"Bearer {place.api_key}"}}
        return [
            FilePlan(
                folder / "hooks.json",
                [JsonDefault(("version",), 1), *(JsonElement(("hooks", event), command) for event in EVENTS)],
            ),
            FilePlan(folder / "mcp.json", [JsonMember(("mcpServers", "lcm"), server)]),
        ]

    def entries(self, event: Event) -> list[dict[str, Any]]:
        session = str(event.get("conversation_id") or "")
        if not session:
            return []
        if event.get("hook_event_name") == "preCompact":
            return [{"do": "flush", "session": _name(session), "reference": f"{session}:{event.get('generation_id')}"}]
        if event.get("hook_event_name") == "sessionEnd":
            return [{"do": "summarize", "session": _name(session)}]
        message = _message(event)
        if message is None:
            return []
        # A random key suffices: an event comes only once, and retries of its spool entry use the same key.
        key = f"cursor:{event.get('generation_id')}:{os.urandom(12).hex()}"
        return [{
            "do": "append", "session": _name(session), "project": _project(event),
            "messages": [{**message, "idempotency_key": key}],
        }]  # fmt: skip

    def replays(self, event: Event) -> bool:
        # Spool entries of tool calls are replayed after the answer, or at the end of the turn.
        return event.get("hook_event_name") in ("afterAgentResponse", "preCompact", "stop", "sessionEnd")

    def answer(self, event: Event) -> str:
        lcm = self.lcm() if event.get("hook_event_name") == "sessionStart" else None
        if lcm is None:
            return ""
        text = recalled(lcm, session="", project=_project(event), tokens=OPENING_TOKENS, characters=MOST_CHARACTERS)
        return json.dumps({"additional_context": text}) if text else ""


def _name(session: str) -> str:
    return f"cursor:{session}"


def _project(event: Event) -> str:
    roots = event.get("workspace_roots")
    return str(roots[0]) if isinstance(roots, list) and roots else ""


def _message(event: Event) -> dict[str, Any] | None:
    """Build the message of an event, in LCM's native format; None if it has none."""
    match event.get("hook_event_name"):
        case "beforeSubmitPrompt" if event.get("prompt"):
            return {"role": "user", "content": event["prompt"]}
        case "afterAgentResponse" if event.get("text"):
            return {"role": "assistant", "content": event["text"]}
        case "afterShellExecution":
            return _of_tool("shell", {"command": event.get("command")}, event.get("output"))
        case "afterMCPExecution":
            return _of_tool(str(event.get("tool_name")), event.get("tool_input"), event.get("result_json"))
        case "afterFileEdit":
            return _of_tool("edit", {"file_path": event.get("file_path"), "edits": event.get("edits")}, "")
    return None


def _of_tool(name: str, given: Any, output: Any) -> dict[str, Any]:
    part = {"part_type": "tool", "tool_name": name, "tool_input": given, "tool_output": output}
    return {"role": "tool", "parts": [part]}


HOST = Cursor()
