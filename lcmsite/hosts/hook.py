"""`lcm hook HOST`: handle one event of a host without making it wait or fail.

The event is JSON on standard input. The work for it goes into the spool, for a separate process (`replay.py`). Only a
recall, for which the host waits, is requested from LCM here. Errors go to `hooks.log` and never reach the host.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from lcmsite.hosts import host_state, spool
from lcmsite.hosts.agent_host import Host, host_named
from lcmsite.hosts.rest_client import BACKGROUND_TIMEOUT_SECONDS

REPLAY = "replay"
# The argument that marks the replay process started by a hook.
DETACHED = "detached"
# The argument to print the host's status line instead of handling an event.
STATUS_LINE = "statusline"
# Limit of an event's size; Claude Code sends whole prompts.
_MOST_BYTES = 32 * 1024**2


def run(name: str, rest: Sequence[str] = ()) -> None:
    """Handle the event on standard input, or print a status line; errors are logged."""
    try:
        host = host_named(name)
        event = json.loads(_received())
        answer = host.status_line(event) if rest[:1] == [STATUS_LINE] else _handled(host, event)
        if answer:
            sys.stdout.write(answer)
            sys.stdout.flush()
    except Exception as error:
        host_state.log(f"{name}: {type(error).__name__}: {error}")


def _received() -> bytes:
    return sys.stdin.buffer.read(_MOST_BYTES)


def _handled(host: Host, event: dict[str, object]) -> str:
    entries = host.entries(event)
    for entry in entries:
        with _logged(host, f"{entry['do']} is not recorded"):
            spool.add({"host": host.name, **entry})
    with _logged(host, "the event is not noted"):
        host_state.note(host.name, event=str(event.get("hook_event_name", "")))
    with _logged(host, "the replay is not started"):
        if host.replays(event) and (entries or spool.pending()[0]):
            start_replay(host.name)
    return host.answer(event)


@contextmanager
def _logged(host: Host, failure: str) -> Iterator[None]:
    """Log an OSError, such as a full disk, and go on."""
    try:
        yield
    except OSError as error:
        host_state.log(f"{host.name}: {failure}: {type(error).__name__}: {error}")


def start_replay(name: str) -> None:
    """Start a detached process that replays the spool, unless one is running."""
    lock = spool.hold()
    if lock is None:
        # The running process looks for new entries before it ends.
        return
    connection = host_state.read(name, "connection.json")
    environ = dict(os.environ)
    if connection:
        # Use the settings of the connected LCM, not the host's own environment.
        environ = {key: value for key, value in environ.items() if not key.startswith("LCM_")}
        environ |= connection.get("environment", {})
    if os.fork():
        # This is the parent; the child process keeps the lock.
        os.close(lock)
        return
    try:
        os.set_inheritable(lock, True)
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(nothing, descriptor)
        code = "import sys; from lcmsite.cli import main; sys.exit(main(sys.argv[1:]))"
        os.chdir("/")
        words = ["hook", REPLAY, DETACHED, name, str(lock)]
        os.execve(sys.executable, [sys.executable, "-P", "-c", code, *words], environ)
    finally:
        os._exit(1)


def answered(words: list[str]) -> bool:
    """Run `lcm hook WORDS` without loading Django, if that is possible.

    Returns False if Django is needed: for help, and for a replay while LCM answers.
    """
    if words[0] == REPLAY:
        return len(words) == 4 and words[1] == DETACHED and not _is_up(words[2])
    if words[0].startswith("-"):
        return False
    run(words[0], words[1:])
    return True


def _is_up(name: str) -> bool:
    """Whether LCM responds; True if the host is not connected (no address to test)."""
    client = host_named(name).lcm(BACKGROUND_TIMEOUT_SECONDS)
    if client is None or client.is_ready():
        return True
    host_state.log(f"{name}: LCM does not answer; {spool.pending()[0]} entries wait in the spool.")
    return False
