"""`lcm connect`, `lcm disconnect`, `lcm hook` and `lcm doctor`."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from django.conf import settings
from django.db import DatabaseError
from rich.console import Console
from rich.prompt import Confirm
from rich.syntax import Syntax

from conversations.errors import Conflict, Invalid, LcmError, Unauthenticated
from conversations.models import Workspace
from lcmsite.access import keys
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.verbs import argument, verb
from lcmsite.hosts import host_state
from lcmsite.hosts.agent_host import Host, Place, host_named, host_names
from lcmsite.hosts.connecting import FileChange, changes_for, make, undoing, unmake
from lcmsite.hosts.doctoring import HostHealth, examine
from lcmsite.hosts.hook import REPLAY, run
from lcmsite.hosts.replay import ReplayReport, replay
from lcmsite.types import KeyScope

# Stands for the key in a change that is only shown.
_NO_KEY_YET = "lcm_(a key of its own)"
# How settings end whose value is a path.
_PATHS = ("_DIR", "_FILE")
_HOST = argument("host", metavar="HOST", choices=host_names(), help=f"The host: {', '.join(host_names())}.")
_YES = argument("--yes", action="store_true", help="Do not ask.")
_DRY_RUN = argument("--dry-run", action="store_true", help="Show the change and make none.")


@dataclass(frozen=True)
class ConnectReport:
    """The files of a host that were changed, and what is left to do."""

    host: str
    changed: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    made: bool = False
    next: str = ""


@verb(
    "connect",
    _HOST,
    _YES,
    _DRY_RUN,
    argument(
        "--mention", action="store_true", help="Also mention LCM in the host's instructions, CLAUDE.md or AGENTS.md."
    ),
    argument(
        "--plugin",
        action="store_true",
        help="Write no file of the host, only the key for its hooks: LCM's plugin for it brings the rest.",
    ),
    argument("--url", metavar="URL", help="Where LCM's API is. Default: this site's LCM_HOST and LCM_PORT."),
    argument("--mcp-url", metavar="URL", help="Where LCM's tools are. Default: this site's LCM_MCP_PORT."),
)
def connect(session: Session, arguments: Namespace) -> ConnectReport:
    """Connect a host of agents: write its hooks and its entry for LCM's tools.

    The change is shown first. What was there stays as it is, byte for byte, and `lcm disconnect` undoes the change. The
    host gets a key of its own, with the scope write. A second run changes nothing, unless that key is no longer good or
    LCM is elsewhere.
    """
    host = host_named(arguments.host)
    recorded = host_state.read(host.name, "connection.json")
    recorded_key = recorded.get("api_key", "")
    key = recorded_key if _is_good(recorded_key) else ""
    place = _place(arguments, api_key=key or _NO_KEY_YET)
    if arguments.plugin and not host.has_plugin:
        raise Invalid(f"There is no plugin for {host.title}: leave out --plugin.")
    changes = [] if arguments.plugin else changes_for(host, place)
    connection = recorded | {
        "api_url": arguments.url or _url(settings.DEPLOYMENT.port),
        "command": place.command,
        # For what hooks do without the host: hosts run in any environment.
        "environment": _environment(),
    }
    if key and connection == recorded and not any(change.is_change for change in changes):
        return _report(host, changes, made=False)
    question = f"Connect {host.title} to LCM at {connection['api_url']}?"
    if not _agreed(changes, arguments, secret=recorded_key, question=question):
        return _report(host, changes, made=False)
    caller = session.caller_with(KeyScope.ADMIN, founding=True)
    if not key:
        issued = keys.issue(
            workspace_id=caller.scope.narrow(Workspace.objects.all()).get().pk,
            name=f"{host.title} on {platform.node()}"[:200],
            scopes=[KeyScope.WRITE],
            by=caller.scope,
        )
        key = issued.key
        connection |= {"api_key": key, "api_key_id": issued.record.api_key_id}
        place = place._replace(api_key=key)
    host_state.write(host.name, "connection.json", connection)
    # With the key, and on what the host has written while the person read the change.
    changes = [] if arguments.plugin else changes_for(host, place)
    make(host, changes)
    if any(change.is_change and f" hook {host.name}".encode() in (change.after or b"") for change in changes):
        # A host that asks for trust in hooks asks again after a change.
        host_state.forget_event(host.name)
    return _report(host, changes, made=True, next=host.after_connecting(place))


@verb("disconnect", _HOST, _YES, _DRY_RUN)
def disconnect(session: Session, arguments: Namespace) -> ConnectReport:
    """Undo `lcm connect`: the files are as they were before.

    A file that has changed since loses only what LCM wrote; what of that was changed is named, to be removed by hand.
    The host's key is revoked. What waits in the spool stays.
    """
    host = host_named(arguments.host)
    connection = host_state.read(host.name, "connection.json")
    changes = undoing(host)
    if not connection and not changes:
        raise Conflict(f"{host.title} is not connected.", code="not_connected")
    if not _agreed(changes, arguments, secret=connection.get("api_key", ""), question=f"Disconnect {host.title}?"):
        return _report(host, changes, made=False, next=_to_remove(host, changes))
    # The host may have written its files while the person read the change.
    changes = undoing(host)
    left_valid = _revoked(host, connection) if connection.get("api_key") else ""
    unmake(host, changes)
    return _report(host, changes, made=True, next=" ".join(filter(None, [_to_remove(host, changes), left_valid])))


@verb(
    "hook",
    argument("host", metavar="HOST", help="The host whose event is on standard input, or `replay`."),
    argument("rest", nargs="*", help="`statusline` for one line about LCM; else not used."),
)
def hook(session: Session, arguments: Namespace) -> ReplayReport | None:
    """Answer an event of a host; hosts call this.

    It never fails: what cannot be done now waits in a spool, and the next event or `lcm hook replay` does it.
    """
    if arguments.host == REPLAY:
        # A process that a hook has started is given the lock of the spool.
        return replay(int(arguments.rest[2]) if len(arguments.rest) == 3 else None)
    run(arguments.host, arguments.rest)
    return None


@verb("doctor", argument("host", metavar="HOST", nargs="?", choices=host_names(), help="One host. Default: all."))
def doctor(session: Session, arguments: Namespace) -> list[HostHealth]:
    """Show whether hosts are connected, alive and imported.

    Of each: the program and its version, the last event, the last import, what waits in the spool, and what to do. The
    exit status is 1 if a connected host cannot reach LCM.
    """
    names = [arguments.host] if arguments.host else host_names()
    return [examine(host_named(name), _place(Namespace(), api_key="")) for name in names]


def _place(arguments: Namespace, *, api_key: str) -> Place:
    port = settings.DEPLOYMENT.mcp_port
    return Place(
        home=Path.home(),
        environ=os.environ,
        command=_command(),
        mcp_url=getattr(arguments, "mcp_url", None) or f"{_url(port)}/mcp",
        api_key=api_key,
        is_mentioned=getattr(arguments, "mention", False),
    )


def _revoked(host: Host, connection: Mapping[str, str]) -> str:
    """Revoke the key of a connection; what is to be done by hand where that fails."""
    number = connection.get("api_key_id")
    try:
        # By the key itself: in another database its number may be that of another key.
        keys.revoke(OPERATOR, key=str(keys.caller_of(connection["api_key"]).api_key_id))
    except LcmError as refusal:
        # Of another database, or removed with it.
        host_state.log(f"{host.name}: the key {number} was not revoked: {refusal.detail}")
    except DatabaseError as error:
        host_state.log(f"{host.name}: the key {number} was not revoked: {type(error).__name__}")
        return f"The key {number} is still valid, as the database does not answer: run `lcm key revoke {number}` later."
    return ""


def _is_good(key: str) -> bool:
    """Whether a host can store with this key."""
    try:
        return keys.caller_of(key).may(KeyScope.WRITE)
    except Unauthenticated:
        return False
    except DatabaseError:
        # The database cannot be asked: keep the key.
        return True


def _url(port: int) -> str:
    host = settings.DEPLOYMENT.host
    # Of all addresses, that of this machine.
    return f"http://{'127.0.0.1' if host in ('0.0.0.0', '::', '') else host}:{port}"


def _environment() -> dict[str, str]:
    """LCM's settings of this process, which mean the same in any directory."""
    found = {name: value for name, value in os.environ.items() if name.startswith("LCM_") and value}
    found.pop("LCM_API_KEY", None)
    paths = {name: str(Path(value).expanduser().absolute()) for name, value in found.items() if name.endswith(_PATHS)}
    return found | paths


def _command() -> str:
    """The program `lcm` that hosts are to call."""
    own = Path(sys.executable).with_name("lcm")
    found = str(own) if own.exists() else shutil.which("lcm")
    if found is None:
        raise Invalid("There is no program `lcm` beside this Python or on PATH: install LCM first.")
    return found


def _agreed(changes: Sequence[FileChange], arguments: Namespace, *, secret: str, question: str) -> bool:
    """Show the changes; whether to make them."""
    console = Console(stderr=True)
    for change in changes:
        if change.is_change:
            text = change.diff(secret)
            console.print(
                Syntax(text, "diff", background_color="default") if console.is_terminal else text, markup=False
            )
    if arguments.dry_run:
        return False
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        raise Invalid("There is no terminal to ask on: give --yes, or --dry-run to see the change.", code="usage")
    return Confirm.ask(question, console=console)


def _to_remove(host: Host, changes: Sequence[FileChange]) -> str:
    """What disconnecting leaves to the person; empty if nothing."""
    left = [f"{change.path}: {', '.join(change.left)}." for change in changes if change.left]
    head = f"This was changed since `lcm connect`: remove it by hand and run `lcm disconnect {host.name}` again."
    return " ".join([head, *left]) if left else ""


def _report(host: Host, changes: Sequence[FileChange], *, made: bool, next: str = "") -> ConnectReport:
    return ConnectReport(
        host.name,
        changed=[change.path for change in changes if change.is_change],
        unchanged=[change.path for change in changes if not change.is_change],
        made=made,
        next=next,
    )
