"""The verbs `lcm connect`, `lcm disconnect`, `lcm hook` and `lcm doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import DatabaseError
from rich.console import Console
from rich.prompt import Confirm
from rich.syntax import Syntax

from conversations.errors import Conflict, Invalid, LcmError, Unauthenticated
from lcmsite.access import keys
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.verbs import argument, verb
from lcmsite.environment import is_url
from lcmsite.hosts import host_state
from lcmsite.hosts.agent_host import Host, Place, host_named, host_names
from lcmsite.hosts.connecting import FileChange, changes_for, make, undoing, unmake
from lcmsite.hosts.doctoring import HostHealth, examine
from lcmsite.hosts.hook import REPLAY, run
from lcmsite.hosts.replay import ReplayReport, replay
from lcmsite.server.serving import url_of
from lcmsite.types import KeyScope

# Shown instead of the key if a change is only shown.
_NO_KEY_YET = "lcm_(a key of its own)"
# Suffixes of settings whose value is a path.
_PATHS = ("_DIR", "_FILE")
_HOST = argument("host", metavar="HOST", choices=host_names(), help=f"The program: {', '.join(host_names())}.")
_YES = argument("--yes", action="store_true", help="Do not ask for confirmation.")
_DRY_RUN = argument("--dry-run", action="store_true", help="Only show the change.")


@dataclass(frozen=True)
class ConnectReport:
    """The files of a host that were changed, and what the user still has to do."""

    host: str
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    made: bool = False
    next: str | None = None


@verb(
    "connect",
    _HOST,
    _YES,
    _DRY_RUN,
    argument(
        "--mention", action="store_true", help="Also mention LCM in the instruction file, CLAUDE.md or AGENTS.md."
    ),
    argument(
        "--plugin",
        action="store_true",
        help="Create an API key, but edit no file of the host. Use it with LCM's plugin, which has hooks and tools.",
    ),
    argument("--url", metavar="URL", help="Address of LCM's API. Default: from this site's LCM_HOST and LCM_PORT."),
    argument("--mcp-url", metavar="URL", help="Address of LCM's MCP server. Default: from LCM_HOST and LCM_MCP_PORT."),
)
def connect(session: Session, arguments: Namespace) -> ConnectReport:
    """Connect an agent program (a host): write its hooks and its MCP entry for LCM.

    The change is shown first. Everything else in the files stays byte for byte, and `lcm disconnect` undoes the change.
    The host gets its own key, with the scope write. A second run changes nothing, unless that key is no longer valid or
    LCM's address has changed.
    """
    host = host_named(arguments.host)
    for option, url in (("--url", arguments.url), ("--mcp-url", arguments.mcp_url)):
        if url and not (is_url(url, ("http", "https")) and urlsplit(url).hostname):
            raise Invalid(f"{option}: {url} is no address such as http://127.0.0.1:8000.", code="usage")
    recorded = host_state.read(host.name, "connection.json")
    recorded_key = recorded.get("api_key", "")
    key = recorded_key if _is_good(recorded_key) else ""
    place = _place(key or _NO_KEY_YET, mcp_url=arguments.mcp_url, is_mentioned=arguments.mention)
    if arguments.plugin and not host.has_plugin:
        raise Invalid(f"There is no plugin for {host.title}: leave out --plugin.")
    changes = [] if arguments.plugin else changes_for(host, place)
    connection = recorded | {
        "api_url": arguments.url or url_of(settings.DEPLOYMENT.host, settings.DEPLOYMENT.port),
        "command": place.command,
        # The replay of the spool uses these settings: hosts run hooks in any environment.
        "environment": _environment(),
    }
    if key and connection == recorded and not any(change.is_change for change in changes):
        return _report(host, changes, made=False)
    question = f"Connect {host.title} to LCM at {connection['api_url']}?"
    if not _agreed(changes, arguments, secret=recorded_key, question=question):
        return _report(host, changes, made=False)
    caller = session.caller_with(KeyScope.ADMIN, creates_default=True)
    if not key:
        issued = keys.issue(
            workspace_id=caller.workspace().pk,
            name=f"{host.title} on {platform.node()}"[:200],
            scopes=[KeyScope.WRITE],
            by=caller.scope,
        )
        key = issued.key
        connection |= {"api_key": key, "api_key_id": issued.record.api_key_id}
        place = place._replace(api_key=key)
    host_state.write(host.name, "connection.json", connection)
    # Plan the changes again: now with the key, and the host may have written its files meanwhile.
    changes = [] if arguments.plugin else changes_for(host, place)
    make(host, changes)
    if any(change.is_change and f" hook {host.name}".encode() in (change.after or b"") for change in changes):
        # Changed hooks must be trusted again: the next event will show that they run.
        host_state.forget_event(host.name)
    return _report(host, changes, made=True, next=host.after_connecting(place))


@verb("disconnect", _HOST, _YES, _DRY_RUN)
def disconnect(session: Session, arguments: Namespace) -> ConnectReport:
    """Undo `lcm connect`: restore the files and revoke the host's key.

    If a file was changed since, only LCM's entries are removed from it. Entries of LCM that were changed are listed;
    remove them by hand. Entries that wait in the spool stay there.
    """
    host = host_named(arguments.host)
    connection = host_state.read(host.name, "connection.json")
    changes = undoing(host)
    if not connection and not changes:
        raise Conflict(f"{host.title} is not connected.", code="not_connected")
    if not _agreed(changes, arguments, secret=connection.get("api_key", ""), question=f"Disconnect {host.title}?"):
        return _report(host, changes, made=False, next=_to_remove(host, changes))
    # The host may have written its files while the user read the change.
    changes = undoing(host)
    left_valid = _revoked(host, connection) if connection.get("api_key") else ""
    unmake(host, changes)
    return _report(host, changes, made=True, next=" ".join(filter(None, [_to_remove(host, changes), left_valid])))


@verb(
    "hook",
    argument("host", metavar="HOST", help="The host whose event is on standard input, or `replay`."),
    argument("rest", nargs="*", help="`statusline` to print one line about LCM; otherwise not used."),
)
def hook(session: Session, arguments: Namespace) -> ReplayReport | None:
    """Handle an event of an agent program (host), which calls this command.

    It never fails: work that cannot be done now waits in a spool for the next event or for `lcm hook replay`.
    """
    if arguments.host == REPLAY:
        # A replay process started by a hook inherits the lock of the spool.
        return replay(int(arguments.rest[2]) if len(arguments.rest) == 3 else None)
    run(arguments.host, arguments.rest)
    return None


@verb("doctor", argument("host", metavar="HOST", nargs="?", choices=host_names(), help="One program. Default: all."))
def doctor(session: Session, arguments: Namespace) -> list[HostHealth]:
    """Show whether agent programs (hosts) are connected and can reach LCM.

    For each program: its version, the last event, the last import of a session, the number of entries that wait in the
    spool, and what to do. The exit status is 1 if a connected program cannot reach LCM.
    """
    names = [arguments.host] if arguments.host else host_names()
    return [examine(host_named(name), _place()) for name in names]


def _place(api_key: str = "", *, mcp_url: str | None = None, is_mentioned: bool = False) -> Place:
    return Place(
        home=Path.home(),
        environ=os.environ,
        command=_command(),
        mcp_url=mcp_url or f"{url_of(settings.DEPLOYMENT.host, settings.DEPLOYMENT.mcp_port)}/mcp",
        api_key=api_key,
        is_mentioned=is_mentioned,
    )


def _revoked(host: Host, connection: Mapping[str, str]) -> str:
    """Revoke a connection's key; if that fails, return what to do by hand, else ""."""
    number = connection.get("api_key_id")
    try:
        # Find the key by its text: in another database, its number may belong to another key.
        keys.revoke(OPERATOR, key=str(keys.caller_of(connection["api_key"]).api_key_id))
    except LcmError as refusal:
        # The key belongs to another database, or was removed.
        host_state.log(f"{host.name}: the key {number} was not revoked: {refusal.detail}")
    except DatabaseError as error:
        host_state.log(f"{host.name}: the key {number} was not revoked: {type(error).__name__}")
        return f"The key {number} is still valid, as the database does not answer: run `lcm key revoke {number}` later."
    return ""


def _is_good(key: str) -> bool:
    """Whether this key is valid and may write."""
    try:
        return keys.caller_of(key).may(KeyScope.WRITE)
    except Unauthenticated:
        return False
    except DatabaseError:
        # The database does not answer: keep the key.
        return True


def _environment() -> dict[str, str]:
    """Return this process's LCM_* settings without the key, with absolute paths."""
    found = {name: value for name, value in os.environ.items() if name.startswith("LCM_") and value}
    for name in ("LCM_API_KEY", "LCM_API_KEY_FILE"):
        found.pop(name, None)
    paths = {name: str(Path(value).expanduser().absolute()) for name, value in found.items() if name.endswith(_PATHS)}
    return found | paths


def _command() -> str:
    """Return the path of the program `lcm` that hosts call."""
    own = Path(sys.executable).with_name("lcm")
    found = str(own) if own.exists() else shutil.which("lcm")
    if found is None:
        raise Invalid("There is no program `lcm` next to this Python or on PATH: install LCM first.")
    return found


def _agreed(changes: Sequence[FileChange], arguments: Namespace, *, secret: str, question: str) -> bool:
    """Show the changes and ask for confirmation; return whether to make them."""
    console = Console(stderr=True)
    for change in changes:
        if change.is_change:
            text = change.diff(secret)
            if console.is_terminal:
                console.print(Syntax(text, "diff", background_color="default"))
            else:
                # Unchanged, so that it can be applied.
                console.file.write(text)
    if arguments.dry_run:
        return False
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        raise Invalid("There is no terminal to ask on: give --yes, or --dry-run to see the change.", code="usage")
    return Confirm.ask(question, console=console)


def _to_remove(host: Host, changes: Sequence[FileChange]) -> str:
    """Return a text about what the user has to remove by hand; "" if nothing."""
    left = [f"{change.path}: {', '.join(change.left)}." for change in changes if change.left]
    head = f"This was changed since `lcm connect`: remove it by hand and run `lcm disconnect {host.name}` again."
    return " ".join([head, *left]) if left else ""


def _report(host: Host, changes: Sequence[FileChange], *, made: bool, next: str = "") -> ConnectReport:
    return ConnectReport(
        host.name,
        changed=[change.path for change in changes if change.is_change],
        unchanged=[change.path for change in changes if not change.is_change],
        made=made,
        next=next or None,
    )
