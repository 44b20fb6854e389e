"""Claude Code: hooks in its settings, LCM's tools in its list of MCP servers.

Claude Code writes each session to a transcript, which is imported. Before it compacts, new messages are imported and
summarized; afterwards, LCM's recall of the session is added to the context.
"""

from __future__ import annotations

import json
import os
import shlex
from typing import Any

from lcmsite.hosts import spool
from lcmsite.hosts.agent_host import MENTION, Event, FilePlan, Place, TranscriptHost
from lcmsite.hosts.rest_client import COMPACTED_SECONDS, Unreachable, recalled

# Claude Code moves longer texts to a file.
MOST_CHARACTERS = 9900
RECALLED_TOKENS = 2000
# Tokens for the recall of earlier sessions when a session starts.
OPENING_TOKENS = 1000
# The status line is redrawn often, so it must not wait long.
STATUS_SECONDS = 0.5

# After how many seconds Claude Code stops waiting for a hook, by event.
EVENTS = {
    "SessionStart": 10,
    "UserPromptSubmit": 10,
    "Stop": 10,
    "SubagentStop": 10,
    "PreCompact": 10,
    "PostCompact": 10,
    "SessionEnd": 1,
}


def hook_groups(command: str) -> dict[str, Any]:
    """Build the hooks of a settings file, by event."""
    return {
        event: {"hooks": [{"type": "command", "command": command, "timeout": seconds}]}
        for event, seconds in EVENTS.items()
    }


class ClaudeCode(TranscriptHost):
    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    has_plugin = True

    def files(self, place: Place) -> list[FilePlan]:
        # Imported here, so that hooks do not load it.
        from lcmsite.hosts.file_edits import JsonDefault, JsonElement, JsonMember, TextBlock

        folder = self.folder(place, "CLAUDE_CONFIG_DIR", ".claude")
        command = f"{shlex.quote(place.command)} hook {self.name}"
        groups = hook_groups(command)
        # JsonDefault: written only if there is no status line yet.
        status_line = JsonDefault(("statusLine",), {"type": "command", "command": f"{command} statusline"})
        server = {
            "type": "http",
            "url": place.mcp_url,
            "headers": {"Authorization": f"Bearer {place.api_key}"},
        }
        plans = [
            FilePlan(
                folder / "settings.json",
                [*(JsonElement(("hooks", event), group) for event, group in groups.items()), status_line],
            ),
            FilePlan(
                self.folder(place, "CLAUDE_CONFIG_DIR") / ".claude.json", [JsonMember(("mcpServers", "lcm"), server)]
            ),
        ]
        if place.is_mentioned:
            plans.append(FilePlan(folder / "CLAUDE.md", [TextBlock(MENTION, comment="<!--")]))
        return plans

    def is_here(self, place: Place) -> bool:
        return self.folder(place, "CLAUDE_CONFIG_DIR", ".claude").is_dir()

    def status_line(self, event: Event) -> str:
        lcm = self.lcm(STATUS_SECONDS)
        if lcm is None:
            return "LCM: not connected"
        pending, _ = spool.pending()
        waiting = f", {pending} to import" if pending else ""
        try:
            found = lcm.get("conversations/find/", session_id=event.get("session_id") or "")
        except Unreachable:
            return f"LCM does not answer{waiting}"
        count = found["counters"]["message_count"] if found else 0
        return f"LCM holds {count:,} message{'' if count == 1 else 's'}{waiting}"

    def entries(self, event: Event) -> list[dict[str, Any]]:
        return [] if _is_in_cursor() else super().entries(event)

    def answer(self, event: Event) -> str:
        if event.get("hook_event_name") != "SessionStart" or event.get("source") == "resume" or _is_in_cursor():
            # A resumed session still has its earlier recall.
            return ""
        has_past = event.get("source") == "compact"
        lcm = self.lcm(COMPACTED_SECONDS) if has_past else self.lcm()
        if lcm is None:
            return ""
        text = recalled(
            lcm,
            session=event["session_id"] if has_past else "",
            project=str(event.get("cwd") or ""),
            tokens=RECALLED_TOKENS if has_past else OPENING_TOKENS,
            characters=MOST_CHARACTERS,
        )
        if not text:
            return ""
        return json.dumps({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})


def _is_in_cursor() -> bool:
    """Whether Cursor runs this hook: Cursor also runs the hooks of Claude Code."""
    return "CURSOR_VERSION" in os.environ


HOST = ClaudeCode()
