"""What a host is to LCM: its files, its events, and what each event leads to.

Hosts are modules `NAME_host.py` in `programs/`, each with a `HOST`. This module and they import neither Django nor
anything else that a hook would have to wait for.
"""

from __future__ import annotations

import importlib
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lcmsite.hosts import host_state
from lcmsite.hosts.rest_client import TIMEOUT_SECONDS, RestClient

if TYPE_CHECKING:
    from lcmsite.hosts.file_edits import Edit

Event = dict[str, Any]

# What is written into the folders of hosts; a link to `clients/plugins`.
PLUGINS = Path(__file__).with_name("plugins")

# For the instructions that a host gives its model.
MENTION = """\
## Memory

LCM keeps every word of every session here, also of those that were compacted. The tools `lcm_grep`, `lcm_expand` and
`lcm_timeline` find and open what was said earlier."""

_SUFFIX = "_host.py"


class Place(NamedTuple):
    """What is known when a host is connected: where things are, and the key."""

    home: Path
    environ: Mapping[str, str]
    # The program `lcm`, as an absolute path.
    command: str
    mcp_url: str
    api_key: str
    # Whether the host's file of instructions shall mention LCM.
    is_mentioned: bool = False


class FilePlan(NamedTuple):
    """A file of the host, and what is to be in it."""

    path: Path
    edits: list[Edit]


class Host(ABC):
    """A program that people run agents with."""

    # The name on the command line, the title for people, the executable.
    name = ""
    title = ""
    program = ""
    # Whether LCM has a plugin for it, which brings the hooks and the tools.
    has_plugin = False

    @abstractmethod
    def files(self, place: Place) -> list[FilePlan]:
        """What `lcm connect` writes, by file."""

    def is_here(self, place: Place) -> bool:
        """Whether the host has been used by this person."""
        return any(plan.path.parent.is_dir() for plan in self.files(place))

    def after_connecting(self, place: Place) -> str:
        """What the person has to do, such as to trust the hooks; empty if nothing."""
        return ""

    def entries(self, event: Event) -> list[dict[str, Any]]:
        """What the event leaves in the spool."""
        return []

    def replays(self, event: Event) -> bool:
        """Whether what is in the spool is worth a process now."""
        return True

    def status_line(self, event: Event) -> str:
        """The text of the host's status line; empty if it has none."""
        return ""

    def answer(self, event: Event) -> str:
        """What the hook prints; empty for nothing."""
        return ""

    def folder(self, place: Place, variable: str, *default: str) -> Path:
        """A folder of the host: what its variable says, or the usual one."""
        given = place.environ.get(variable)
        return Path(given).absolute() if given else place.home.joinpath(*default)

    def lcm(self, timeout: float = TIMEOUT_SECONDS) -> RestClient | None:
        """The LCM that this host is connected to."""
        connection = host_state.read(self.name, "connection.json")
        if not connection.get("api_url") or not connection.get("api_key"):
            return None
        return RestClient(connection["api_url"], connection["api_key"], timeout)


class TranscriptHost(Host):
    """A host whose hooks name the files that it writes all of a session into."""

    def entries(self, event: Event) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        # The file of a new session is empty; that of one that goes on may hold what was missed.
        is_new = event.get("hook_event_name") == "SessionStart" and event.get("source") not in ("resume", "compact")
        if event.get("transcript_path") and not is_new:
            found.append({"do": "import", "file": event["transcript_path"]})
        if event.get("agent_transcript_path"):
            found.append({"do": "import", "file": event["agent_transcript_path"], "is_child": True})
        if event.get("hook_event_name") == "PreCompact":
            reference = f"{event['session_id']}:{event.get('prompt_id') or os.urandom(8).hex()}"
            found.append({"do": "flush", "session": event["session_id"], "reference": reference})
        return found

    def replays(self, event: Event) -> bool:
        # The prompt is in the file a little later, and its answer comes with the next event.
        return event.get("hook_event_name") != "UserPromptSubmit"


def host_names() -> list[str]:
    found = Path(__file__).with_name("programs").glob(f"*{_SUFFIX}")
    return sorted(path.name.removesuffix(_SUFFIX).replace("_", "-") for path in found)


def host_named(name: str) -> Host:
    """The host of this name; KeyError if there is none."""
    if name not in host_names():
        raise KeyError(name)
    host: Host = importlib.import_module(f"lcmsite.hosts.programs.{name.replace('-', '_')}_host").HOST
    return host
