"""Process the spool entries of hooks: imports, appends, flushes and summaries."""

from __future__ import annotations

import math
import os
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from compaction.history.session_history import SessionHistory
from compaction.hosts.host_service import HostCompaction
from conversations.errors import ConversationBusy, Forbidden, Invalid, NotFound, Unauthenticated, Unavailable
from conversations.formats import from_native
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from conversations.store.read import seqs_of_keys
from lcmsite.catalogue.problems import INTERNAL, problem_of
from lcmsite.cli.cli_session import Session
from lcmsite.hosts import host_state, spool
from lcmsite.importing.history import History
from lcmsite.importing.importer import Importer
from lcmsite.importing.resume_check import AT_ONCE, HistoryChanged
from lcmsite.types import KeyScope

# After this many unexpected failures, only `lcm hook replay` by hand retries an entry.
MOST_ATTEMPTS = 5
# How long a replay waits for other compactions of the conversations to flush: the imports before may lead to some.
BUSY_SECONDS = 60
_PAUSE_SECONDS = 0.2
# Errors that no retry can cure: the entry is removed. After other errors it stays in the spool.
_HOPELESS = (Invalid, NotFound, HistoryChanged)


@dataclass
class ReplayReport:
    """How many entries were processed, and how many still wait."""

    done: int = 0
    created: int = 0
    waiting: int = 0
    refused: list[str] = field(default_factory=list)


def replay(lock: int | None = None) -> ReplayReport:
    """Process the spool until there are no new entries; one process at a time.

    If a hook started this process, `lock` is the inherited descriptor of the spool's lock. Entries that have failed
    unexpectedly `MOST_ATTEMPTS` times are then skipped.
    """
    most_attempts = math.inf if lock is None else MOST_ATTEMPTS
    report = ReplayReport()
    tried: set[tuple[str, float]] = set()
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        # Look again after releasing the lock: hooks that found it held rely on this process.
        fresh = [
            (name, entry)
            for name, entry in spool.entries()
            if (name, entry["at"]) not in tried and entry.get("attempts", 0) < most_attempts
        ]
        if lock is None and fresh:
            lock = spool.hold()
        if lock is None:
            break
        try:
            for name, entry in fresh:
                with suppress(ConversationBusy):
                    _try(name, entry, report, waits=time.monotonic() < deadline)
                    tried.add((name, entry["at"]))
        finally:
            os.close(lock)
            lock = None
        if any((name, entry["at"]) not in tried for name, entry in fresh):
            time.sleep(_PAUSE_SECONDS)
    report.waiting = spool.pending()[0]
    return report


def _try(name: str, entry: dict[str, Any], report: ReplayReport, *, waits: bool) -> None:
    """Process an entry and report errors; if it `waits`, raise ConversationBusy."""
    host = str(entry["host"])
    of = entry.get("file", entry.get("session"))
    try:
        created = _do(entry, _scope_of(host))
    except Exception as error:
        # Catch every error: the other entries must be tried, too.
        if waits and isinstance(error, ConversationBusy):
            raise
        problem = problem_of(error)
        detail = _place_of(error) if problem is INTERNAL else problem.detail
        host_state.log(f"{host}: {entry['do']} {of}: {detail}")
        host_state.note(host, problem=f"{entry['do']}: {detail}")
        if problem.retryable:
            return
        report.refused.append(f"{of}: {detail}")
        if not isinstance(error, _HOPELESS):
            if not isinstance(error, Unauthenticated | Forbidden):
                spool.count_attempt(name, entry)
            return
    else:
        report.created += created
        host_state.note(host, **{str(entry["do"]): {"of": of, "created": created}})
    spool.done(name, entry)
    report.done += 1


def _place_of(error: Exception) -> str:
    """Return an error's type and code line; its text may quote a message."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}."


def _scope_of(host: str) -> Scope:
    """Return the scope of the host's key; without a key, that of the command line."""
    key = host_state.read(host, "connection.json").get("api_key", "")
    return Session(api_key=key).caller_with(KeyScope.WRITE, creates_default=True).scope


def _do(entry: dict[str, Any], scope: Scope) -> int:
    """Process one entry; return how many messages were stored."""
    match entry["do"]:
        case "import":
            return _import(Path(entry["file"]), scope)
        case "append":
            return _append(entry, scope)
        case "flush":
            _flush(entry, scope)
        case "summarize":
            _summarize(entry, scope)
    return 0


def _import(path: Path, scope: Scope) -> int:
    # A host may name a transcript that it never writes.
    if not path.exists() or not path.stat().st_size:
        return 0
    store = ConversationStore.from_settings(scope)
    history = History(path=path)
    conversations = Importer(store, history).run()
    if history.broken_lines:
        host_state.log(f"{path} was imported without its broken lines: {history.broken_lines[:100]}.")
    return sum(each.created for each in conversations)


def _conversation_id(entry: dict[str, Any], scope: Scope) -> int | None:
    """Return the conversation of an entry's session; None if it has no messages."""
    try:
        return ConversationStore.from_settings(scope).find_conversation(session_id=entry["session"]).conversation_id
    except NotFound:
        return None


def _flush(entry: dict[str, Any], scope: Scope) -> None:
    if (conversation_id := _conversation_id(entry, scope)) is not None:
        HostCompaction.from_settings(scope).flush_all(
            conversation_id=conversation_id,
            host_reference=entry["reference"],
            last_seq=_last_seq_before(entry, conversation_id),
        )


def _last_seq_before(entry: dict[str, Any], conversation_id: int) -> int | None:
    """Return the seq of the last message in the transcript at the time of the entry.

    Returns None if the entry has no transcript, or the transcript no message. Raises Unavailable while the import of
    the transcript waits, and NotFound if it was refused: the newest stored message may be one that the host keeps.
    """
    path = Path(entry.get("file", ""))
    if "size" not in entry or not path.is_file():
        return None
    history = History(path=path, opener=lambda path: BytesIO(path.read_bytes()[: entry["size"]]))
    entries = (each for each in history.entries() if each.session_id == entry["session"])
    keys = [each.key for each in entries if not each.repeats]
    if not keys:
        return None
    seqs = seqs_of_keys(conversation_id, keys[-AT_ONCE:])
    if keys[-1] not in seqs and spool.has_import(entry["file"]):
        raise Unavailable("The transcript is not imported yet; the flush waits for it.")
    if not seqs:
        raise NotFound("The transcript was not imported, so it is unknown where the host cut; nothing was flushed.")
    return max(seqs.values())


def _summarize(entry: dict[str, Any], scope: Scope) -> None:
    history = SessionHistory.from_settings(scope)
    conversation_id = _conversation_id(entry, scope)
    if conversation_id is not None and history.policy.session_quiet_minutes:
        history.request_session(conversation_id=conversation_id)


def _append(entry: dict[str, Any], scope: Scope) -> int:
    store = ConversationStore.from_settings(scope)
    opened = store.open_conversation(session_id=entry["session"], project=entry.get("project") or None)
    try:
        # The messages are in LCM's native format, each with an idempotency key.
        messages = [from_native(row) for row in entry["messages"]]
    except ValueError as wrong:
        raise Invalid(str(wrong)) from wrong
    appended = store.append_messages(conversation_id=opened.conversation_id, messages=messages)
    return sum(each.created for each in appended.messages)
