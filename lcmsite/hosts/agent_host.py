"""The interface of a host: an agent program whose hooks call LCM.

A `Host` defines which files `lcm connect` edits and how events are handled. Each host is a module `NAME_host.py` in
`programs/`, with a `HOST`. To keep hooks quick, these modules and this one do not import Django or other slow modules.
"""

from __future__ import annotations

import importlib
import json
import os
import shlex
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lcmsite.hosts import host_state, spool
from lcmsite.hosts.rest_client import COMPACTED_SECONDS, TIMEOUT_SECONDS, RestClient, recalled

if TYPE_CHECKING:
    from lcmsite.hosts.file_edits import Edit

Event = dict[str, Any]

# Plugins that are copied into the folders of hosts; a link to `clients/plugins`.
PLUGINS = Path(__file__).with_name("plugins")

_SUFFIX = "_host.py"
# The events of hosts that write transcripts, and after how many seconds they stop waiting for the hook.
_EVENTS = ("SessionStart", "UserPromptSubmit", "Stop", "SubagentStop", "PreCompact", "PostCompact", "SessionEnd")
_EVENT_SECONDS = 10
# How long a recall waits for the flush before it; less than COMPACTED_SECONDS, within which both must end.
FLUSH_SECONDS = 4.0


class Place(NamedTuple):
    """The data for connecting a host: folder, environment, command, address and key."""

    home: Path
    environ: Mapping[str, str]
    # The program `lcm`, as an absolute path.
    command: str
    mcp_url: str
    api_key: str
    # Whether to mention LCM in the host's instruction file.
    is_mentioned: bool


class FilePlan(NamedTuple):
    """A file of the host, and the edits to make in it."""

    path: Path
    edits: list[Edit]


class Host(ABC):
    """An agent program, such as Claude Code; one subclass for each."""

    # The host's name on the command line, its title, and its executable.
    name = ""
    title = ""
    program = ""
    # Whether LCM has a plugin for this host, which contains the hooks and the tools.
    has_plugin = False
    # The file with instructions for the model, in the host's folder; "" if it has none.
    instructions = "AGENTS.md"

    @abstractmethod
    def own_folder(self, place: Place) -> Path:
        """Return the folder that the host creates when it is first used."""

    @abstractmethod
    def files(self, place: Place) -> list[FilePlan]:
        """Return the files that `lcm connect` edits, with their edits."""

    def hook_command(self, place: Place) -> str:
        """Return the command that the host runs for an event."""
        return f"{shlex.quote(place.command)} hook {self.name}"

    def after_connecting(self, place: Place) -> str:
        """Return what the user still has to do, such as trust the hooks; "" if nothing."""
        return ""

    def entries(self, event: Event) -> list[dict[str, Any]]:
        """Return the spool entries (work for later) that an event leads to."""
        return []

    def replays(self, event: Event) -> bool:
        """Whether to start a process now that replays the spool."""
        return True

    def status_line(self, event: Event) -> str:
        """Return the text of the host's status line; "" if it has none."""
        return ""

    def answer(self, event: Event) -> str:
        """Return what the hook prints for an event; "" for nothing."""
        return ""

    def folder(self, place: Place, variable: str, *default: str) -> Path:
        """Return a folder of the host: from its environment variable, or the default."""
        given = place.environ.get(variable)
        return Path(given).absolute() if given else place.home.joinpath(*default)

    def lcm(self, timeout: float = TIMEOUT_SECONDS) -> RestClient | None:
        """Return a client of the LCM that the host is connected to, if it is; else None."""
        connection = host_state.read(self.name, "connection.json")
        if not connection.get("api_url") or not connection.get("api_key"):
            return None
        return RestClient(connection["api_url"], connection["api_key"], timeout)


class TranscriptHost(Host):
    """A host whose hooks name the transcript files that it writes."""

    # The host moves a longer recall to a file.
    most_characters = 0
    # After how many seconds the host stops waiting for a hook when a session ends.
    seconds_at_end = 0

    def hook_groups(self, command: str) -> dict[str, Any]:
        """Build the hooks of a settings file, by event."""
        seconds = dict.fromkeys(_EVENTS, _EVENT_SECONDS) | {"SessionEnd": self.seconds_at_end}
        return {
            event: {"hooks": [{"type": "command", "command": command, "timeout": seconds[event]}]} for event in _EVENTS
        }

    def entries(self, event: Event) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        # A new session's transcript is empty; that of a resumed one may have lines not imported yet.
        is_new = event.get("hook_event_name") == "SessionStart" and event.get("source") not in ("resume", "compact")
        if event.get("transcript_path") and not is_new:
            found.append({"do": "import", "file": event["transcript_path"]})
        if event.get("agent_transcript_path"):
            found.append({"do": "import", "file": event["agent_transcript_path"], "is_child": True})
        if event.get("hook_event_name") == "PreCompact":
            reference = f"{event['session_id']}:{event.get('prompt_id') or os.urandom(8).hex()}"
            flush: dict[str, Any] = {"do": "flush", "session": event["session_id"], "reference": reference}
            if path := event.get("transcript_path"):
                with suppress(OSError):
                    # Lines that the host writes later are not cut.
                    flush |= {"file": path, "size": Path(path).stat().st_size}
            found.append(flush)
        if event.get("hook_event_name") == "SessionEnd" and event.get("session_id"):
            found.append({"do": "summarize", "session": event["session_id"]})
        return found

    def replays(self, event: Event) -> bool:
        # The prompt reaches the file a little later; the event that follows its answer imports both.
        return event.get("hook_event_name") != "UserPromptSubmit"

    def recall(self, event: Event, *, session: str, tokens: int) -> str:
        """Return the hook output with the recall of a session, or of the project if "".

        Returns "" if there is none. Raises Unreachable.
        """
        lcm = self.lcm(COMPACTED_SECONDS) if session else self.lcm()
        if lcm is None:
            return ""
        if session and lcm.is_ready():
            _wait_for_flush(session)
        project = str(event.get("cwd") or "")
        text = recalled(lcm, session=session, project=project, tokens=tokens, characters=self.most_characters)
        if not text:
            return ""
        output = {"hookEventName": event["hook_event_name"], "additionalContext": text}
        return json.dumps({"hookSpecificOutput": output})


def _wait_for_flush(session: str) -> None:
    """Wait a while for the flush of a session, whose summaries its recall shows."""
    deadline = time.monotonic() + FLUSH_SECONDS
    while time.monotonic() < deadline and spool.has_flush(session):
        time.sleep(0.1)


def host_names() -> list[str]:
    found = Path(__file__).with_name("programs").glob(f"*{_SUFFIX}")
    return sorted(path.name.removesuffix(_SUFFIX).replace("_", "-") for path in found)


def host_named(name: str) -> Host:
    """Return the host of this name. Raises KeyError if there is none."""
    if name not in host_names():
        raise KeyError(name)
    host: Host = importlib.import_module(f"lcmsite.hosts.programs.{name.replace('-', '_')}_host").HOST
    return host
