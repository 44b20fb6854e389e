"""Codex: hooks in `hooks.json`, LCM's tools as an MCP server in `config.toml`.

Codex writes each session to a rollout file, which is imported. After a compaction, LCM's recall is given when the
session continues. If there was no such event, or LCM did not respond, it is given with the next prompt. Codex rejects
hook output with unknown JSON keys.
"""

from __future__ import annotations

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

from lcmsite.hosts import host_state
from lcmsite.hosts.agent_host import Event, FilePlan, Place, TranscriptHost
from lcmsite.hosts.rest_client import Unreachable

RECALLED_TOKENS = 1800
OPENING_TOKENS = 1000
# After a recall that failed in n seconds, the next attempt is made PAUSE * n seconds later.
PAUSE = 10


class Codex(TranscriptHost):
    name = "codex"
    title = "Codex"
    program = "codex"
    # Codex moves texts of more than 2,500 of its own tokens to a file.
    most_characters = 9000
    seconds_at_end = 3

    def own_folder(self, place: Place) -> Path:
        return self.folder(place, "CODEX_HOME", ".codex")

    def files(self, place: Place) -> list[FilePlan]:
        # Imported here, so that hooks do not load it.
        from lcmsite.hosts.file_edits import JsonElement, TextBlock

        folder = self.own_folder(place)
        groups = self.hook_groups(self.hook_command(place))
        server = (
            "[mcp_servers.lcm]\n"
            f"url = {json.dumps(place.mcp_url)}\n"
            f'http_headers = {{ "Authorization" = {json.dumps("Bearer " + place.api_key)} }}'
        )
        return [
            FilePlan(
                folder / "hooks.json",
                [JsonElement(("hooks", event), group) for event, group in groups.items()],
            ),
            FilePlan(folder / "config.toml", [TextBlock(server, table=("mcp_servers", "lcm"))]),
        ]

    def after_connecting(self, place: Place) -> str:
        return "Codex runs hooks only when you trust them: start `codex`, enter /hooks, and trust those of LCM."

    def answer(self, event: Event) -> str:
        kind, session = event.get("hook_event_name"), str(event.get("session_id", ""))
        if kind == "PostCompact":
            host_state.write_text(_flag(session), "")
        if kind == "SessionStart" and event.get("source") in ("startup", "clear"):
            return self.recall(event, session="", tokens=OPENING_TOKENS)
        is_going_on = kind == "SessionStart" and event.get("source") == "compact"
        if is_going_on or (kind == "UserPromptSubmit" and _is_due(session)):
            return self._recall_once(event, session)
        return ""

    def _recall_once(self, event: Event, session: str) -> str:
        """Recall a compacted session; after a failure, a later prompt tries again."""
        began = time.monotonic()
        try:
            answer = self.recall(event, session=session, tokens=RECALLED_TOKENS)
        except Unreachable:
            with suppress(OSError):
                again = time.time() + PAUSE * (time.monotonic() - began)
                host_state.write_text(_flag(session), str(again))
            raise
        if answer:
            with suppress(OSError):
                _flag(session).unlink()
        return answer


def _flag(session: str) -> Path:
    """Return the path of the flag file of a compacted session without its recall.

    The file contains the time of the next attempt; it is empty if an attempt is due now.
    """
    return host_state.path_of("codex", f"compacted-{hashlib.sha256(session.encode()).hexdigest()[:24]}")


def _is_due(session: str) -> bool:
    """Whether the recall of a compacted session is due."""
    try:
        return float(_flag(session).read_text() or 0) <= time.time()
    except FileNotFoundError:
        return False


HOST = Codex()
