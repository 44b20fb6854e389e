"""Claude Code: hooks in its settings, LCM's tools in its list of MCP servers.

Claude Code writes each session to a transcript, which is imported. Before it compacts, new messages are imported and
summarized; afterwards, LCM's recall of the session is added to the context.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from lcmsite.hosts import spool
from lcmsite.hosts.agent_host import Event, FilePlan, Place, TranscriptHost
from lcmsite.hosts.rest_client import Unreachable

RECALLED_TOKENS = 2000
# Tokens for the recall of earlier sessions when a session starts.
OPENING_TOKENS = 1000
# The status line is redrawn often, so it must not wait long.
STATUS_SECONDS = 0.5


class ClaudeCode(TranscriptHost):
    name = "claude-code"
    title = "Claude Code"
    program = "claude"
    has_plugin = True
    instructions = "CLAUDE.md"
    most_characters = 9900
    seconds_at_end = 1

    def own_folder(self, place: Place) -> Path:
        return self.folder(place, "CLAUDE_CONFIG_DIR", ".claude")

    def files(self, place: Place) -> list[FilePlan]:
        # Imported here, so that hooks do not load it.
        from lcmsite.hosts.file_edits import JsonDefault, JsonElement, JsonMember

        command = self.hook_command(place)
        groups = self.hook_groups(command)
        # JsonDefault: written only if there is no status line yet.
        status_line = JsonDefault(("statusLine",), {"type": "command", "command": f"{command} statusline"})
        server = {
            "type": "http",
            "url": place.mcp_url,
            "headers": {"Authorization": f"Bearer {place.api_key}"},
        }
        return [
            FilePlan(
                self.own_folder(place) / "settings.json",
                [*(JsonElement(("hooks", event), group) for event, group in groups.items()), status_line],
            ),
            FilePlan(
                self.folder(place, "CLAUDE_CONFIG_DIR") / ".claude.json", [JsonMember(("mcpServers", "lcm"), server)]
            ),
        ]

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
        if event.get("source") == "compact":
            return self.recall(event, session=event["session_id"], tokens=RECALLED_TOKENS)
        return self.recall(event, session="", tokens=OPENING_TOKENS)


def _is_in_cursor() -> bool:
    """Whether Cursor runs this hook: Cursor also runs the hooks of Claude Code."""
    return "CURSOR_VERSION" in os.environ


HOST = ClaudeCode()
