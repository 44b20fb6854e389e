"""`lcm import --discover` and `lcm watch`: import agents' sessions from disk."""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections
from rich.console import Console
from rich.prompt import Confirm

from conversations.errors import Invalid
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from lcmsite.catalogue.problems import problem_of
from lcmsite.cli.cli_session import Session
from lcmsite.cli.verbs import argument, verb
from lcmsite.importing.discovery import QUIET_SECONDS, FoundFiles, Place, counted, find_files, places_of
from lcmsite.importing.sweeping import Memory, Sweep, Sweeper
from lcmsite.types import KeyScope

DIRECTORIES = argument(
    "--directory",
    metavar="DIR",
    action="append",
    default=[],
    help="Also search this directory for histories of aider; repeatable.",
)


@dataclass(frozen=True)
class FoundReport:
    """The files found, if nothing was imported."""

    found: list[FoundFiles]


def discover(session: Session, arguments: Namespace) -> FoundReport | Sweep:
    """Find all sessions, list them, ask for confirmation, and import them."""
    scope = session.caller_with(KeyScope.WRITE, creates_default=True).scope
    places = _places(arguments)
    files = find_files(places)
    found = counted(files, places)
    if not files:
        return FoundReport([])
    if not arguments.yes:
        if not sys.stdin.isatty():
            print("Nothing was imported: there is no terminal to ask on. Give --yes.", file=sys.stderr)  # noqa: T201
            return FoundReport(found)
        console = Console(stderr=True)
        for each in found:
            console.print(
                f"{each.agent}: {each.files:,} files, {each.byte_size / 1e6:,.1f} MB, {each.oldest:%Y-%m-%d} to"
                f" {each.newest:%Y-%m-%d}, in {each.folder}"
            )
        if not Confirm.ask("Import all of them?", console=console):
            return FoundReport(found)
    result = _sweeper(scope).sweep(files)
    if result.refused:
        print(f"{len(result.refused):,} of {len(files):,} files refused", file=sys.stderr)  # noqa: T201
    return result


@verb(
    "watch",
    argument("--seconds", metavar="N", type=float, default=10.0, help="Seconds between two scans. Default: 10."),
    argument("--once", action="store_true", help="Scan once, files just written included, then exit."),
    DIRECTORIES,
)
def watch(session: Session, arguments: Namespace) -> Sweep:
    """Import new messages of all agents on this machine, until stopped.

    A changed file is read when it has not been written to for some seconds. SIGINT or SIGTERM ends the command after
    the current file; it then reports what was stored. The exit status is 1 if the last scan refused a file. For the
    known agents, see `lcm import --discover`.
    """
    if not 0 < arguments.seconds <= threading.TIMEOUT_MAX:
        raise Invalid("--seconds must be a positive number.")
    sweeper = _sweeper(session.caller_with(KeyScope.WRITE, creates_default=True).scope)
    total = Sweep()
    with _stopped_by_signals() as stop:
        while not stop.is_set():
            found_files, now = find_files(_places(arguments)), time.time()
            files = [each for each in found_files if arguments.once or abs(now - each.changed / 1e9) > QUIET_SECONDS]
            try:
                found = sweeper.sweep(takewhile(lambda _: not stop.is_set(), files))
            except (InterfaceError, OperationalError) as outage:
                if arguments.once:
                    raise
                # Such as a restart of the database: the next scan reads the rest.
                print(problem_of(outage).detail, file=sys.stderr)  # noqa: T201
                close_old_connections()
                found = Sweep()
            total = found.after(total)
            if found.created:
                print(f"{found.created:,} messages of {found.conversations:,} conversations", file=sys.stderr)  # noqa: T201
            if arguments.once or stop.wait(arguments.seconds):
                break
    return total


def _places(arguments: Namespace) -> list[Place]:
    directories = [Path(each).expanduser().resolve() for each in arguments.directory]
    return places_of(Path.home(), os.environ, directories)


def _sweeper(scope: Scope) -> Sweeper:
    """Build the sweeper of a workspace; it remembers files of this database only."""
    store = ConversationStore.from_settings(scope)
    database = settings.DATABASES["default"]
    of = repr([scope.workspace_id, *(str(database.get(key)) for key in ("HOST", "PORT", "NAME"))])
    name = f"imported-{hashlib.sha256(of.encode()).hexdigest()[:16]}.json"
    return Sweeper(store, Memory(Path(settings.DATA_DIR, name)))


@contextmanager
def _stopped_by_signals() -> Iterator[threading.Event]:
    """Yield an event set by SIGINT and SIGTERM; restore their handlers afterwards."""
    stop = threading.Event()
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda *_: stop.set())
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
