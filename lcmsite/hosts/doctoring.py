"""Diagnose the connection of each agent program (host) to LCM."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db import DatabaseError

from conversations.errors import LcmError
from conversations.models import Conversation
from lcmsite.hosts import host_state, spool
from lcmsite.hosts.agent_host import Host, Place
from lcmsite.hosts.connecting import undoing
from lcmsite.hosts.rest_client import BACKGROUND_TIMEOUT_SECONDS

_VERSION_SECONDS = 10
# The session id in a transcript's file name.
_SESSION = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True)
class HostHealth:
    """The diagnosis of one host; `advice` has a line for each thing to do.

    `alive` is whether the host's hooks can reach LCM with their key; None if the host is not connected.
    """

    host: str
    found: bool
    version: str
    connected: bool
    lcm_answers: bool | None
    last_event: str
    last_import: str
    pending: int
    last_problem: str
    advice: str
    alive: bool | None = None

    @property
    def is_cut_off(self) -> bool:
        """Whether the host is connected, but cannot reach LCM."""
        return self.alive is False


def examine(host: Host, place: Place) -> HostHealth:
    """Examine a host: program, files, spool entries, and whether LCM responds."""
    program = shutil.which(host.program, path=place.environ.get("PATH"))
    found = program is not None or host.own_folder(place).is_dir()
    connection = host_state.read(host.name, "connection.json")
    activity = host_state.read(host.name, "activity.json")
    client = host.lcm(BACKGROUND_TIMEOUT_SECONDS)
    answers = None if client is None else client.is_ready()
    is_refused = client is not None and client.refuses_key()
    pending = sum(entry["host"] == host.name for _, entry in spool.entries())
    missing, changed = _differences(host) if connection else ([], [])
    command = connection.get("command", place.command)
    is_command_there = os.access(command, os.X_OK)
    advice = []
    if found and not connection:
        advice.append(f"Run `lcm connect {host.name}`.")
    if missing:
        advice.append(f"{', '.join(missing)} lacks what LCM wrote: run `lcm connect {host.name}` again.")
    if changed:
        advice.append(
            f"This was changed since `lcm connect`: {' '.join(changed)} Leave it if that is intended, or remove it by "
            f"hand and run `lcm connect {host.name}` again."
        )
    if connection and answers is False:
        advice.append(f"LCM does not answer at {connection['api_url']}: start `lcm up`.")
    if is_refused:
        advice.append(f"LCM does not take the key of {host.title}: run `lcm connect {host.name}` again.")
    if _has_failed(activity):
        advice.append(f"Since the last import this has failed: {_problem(activity)['what']}")
    if connection and pending and answers and not is_refused:
        advice.append("Run `lcm hook replay`.")
    if connection and "event" not in activity:
        advice.append(host.after_connecting(place) or f"No event has come yet: start a session of {host.title}.")
    if not is_command_there:
        advice.append(f"{command} is gone: run `lcm connect {host.name}` again.")
    if connection and _is_in_gateway(activity):
        advice.append(
            "The gateway records the same sessions under names of its own (gateway/...): use it or the hooks, not both."
        )
    return HostHealth(
        host=host.name,
        found=found,
        version=_version(program),
        connected=bool(connection),
        lcm_answers=answers,
        last_event=_moment(activity.get("event")),
        last_import=_moment(activity.get("import")),
        pending=pending,
        last_problem=_moment("problem" in activity and _problem(activity)),
        advice="\n".join(advice),
        alive=(answers is True and not is_refused and not missing and is_command_there) if connection else None,
    )


def _problem(activity: dict[str, Any]) -> dict[str, Any]:
    """The last problem, with an error of JavaScript's `fetch` in words."""
    noted = activity["problem"]
    return {**noted, "what": str(noted["what"]).replace("TypeError: fetch failed", "LCM did not answer")}


def _has_failed(activity: dict[str, Any]) -> bool:
    """Whether the last problem is newer than the last import or append."""
    if "problem" not in activity:
        return False
    stored = (activity[name]["at"] for name in ("import", "append") if name in activity)
    return bool(activity["problem"]["at"] > max(stored, default=0.0))


def _is_in_gateway(activity: dict[str, Any]) -> bool:
    """Whether the gateway has recorded the last imported session, too."""
    noted = (activity.get("import") or {}).get("what") or {}
    session = _SESSION.search(str(noted.get("of", "")).rpartition("/")[2])
    with suppress(DatabaseError):
        return session is not None and Conversation.objects.filter(session_id=f"gateway/{session[0]}").exists()
    return False


def _differences(host: Host) -> tuple[list[str], list[str]]:
    """Files without the entries that LCM wrote, and entries that were changed since."""
    try:
        changes = undoing(host)
    except LcmError as wrong:
        return [wrong.detail], []
    missing = [change.path for change in changes if not change.is_change and not change.left]
    return missing, [f"{change.path}: {', '.join(change.left)}." for change in changes if change.left]


def _version(program: str | None) -> str:
    if program is None:
        return ""
    try:
        shown = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=_VERSION_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    # pi prints its version to standard error.
    lines = (shown.stdout.strip() or shown.stderr.strip()).splitlines()
    return lines[0] if lines and shown.returncode == 0 else "unknown"


def _moment(noted: Any) -> str:
    """Format a note of `activity.json`: its time and its value."""
    if not isinstance(noted, dict):
        return ""
    moment = datetime.fromtimestamp(noted["at"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    what = noted["what"]
    if isinstance(what, dict):
        what = f"{what['of']}, {what['created']} new messages"
    return f"{moment} {what}"
