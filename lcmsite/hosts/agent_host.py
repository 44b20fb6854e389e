"""The interface of a host: an agent program whose hooks call LCM.

A `Host` defines which files `lcm connect` edits and how events are handled. Each host is a module `NAME_host.py` in
`programs/`, with a `HOST`. To keep hooks quick, these modules and this one do not import Django or other slow modules.
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

# Plugins that are copied into the folders of hosts; a link to `clients/plugins`.
PLUGINS = Path(__file__).with_name("plugins")

# Appended to a host's instruction file (CLAUDE.md, AGENTS.md).
MENTION = """\
## Memory

LCM keeps every word of every session here, also of those that were compacted. The tools `lcm_grep`, `lcm_expand` and
`lcm_timeline` find and open what was said earlier."""

_SUFFIX = "_host.py"


class Place(NamedTuple):
    """The data for connecting a host: folder, environment, command, address and key."""

    home: Path
    environ: Mapping[str, str]
    # The program `lcm`, as an absolute path.
    command: str
    mcp_url: str
    api_key: str
    # Whether to add MENTION to the host's instruction file.
    is_mentioned: bool = False


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

    @abstractmethod
    def files(self, place: Place) -> list[FilePlan]:
        """Return the files that `lcm connect` edits, with their edits."""

    def is_here(self, place: Place) -> bool:
        """Whether this user has used the host before."""
        return any(plan.path.parent.is_dir() for plan in self.files(place))

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
            found.append({"do": "flush", "session": event["session_id"], "reference": reference})
        return found

    def replays(self, event: Event) -> bool:
        # The prompt reaches the file a little later; the event that follows its answer imports both.
        return event.get("hook_event_name") != "UserPromptSubmit"


def host_names() -> list[str]:
    found = Path(__file__).with_name("programs").glob(f"*{_SUFFIX}")
    return sorted(path.name.removesuffix(_SUFFIX).replace("_", "-") for path in found)


def host_named(name: str) -> Host:
    """Return the host of this name. Raises KeyError if there is none."""
    if name not in host_names():
        raise KeyError(name)
    host: Host = importlib.import_module(f"lcmsite.hosts.programs.{name.replace('-', '_')}_host").HOST
    return host
