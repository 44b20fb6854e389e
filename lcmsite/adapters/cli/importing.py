"""`lcm import`: a history from a file, in batches, each stored whole or not at all, so that a second run goes on."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from django.db import transaction
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from compaction.engine import CompactionEngine
from compaction.types import CompactionResult
from conversations.errors import Conflict, ConversationBusy, Invalid
from conversations.interchange import READERS
from conversations.store import ConversationStore
from lcmsite.adapters.cli.history import Entry, History
from lcmsite.adapters.cli.resuming import Comparison
from lcmsite.adapters.cli.session import Session
from lcmsite.adapters.cli.verbs import Outcome, Verb
from lcmsite.types import KeyScope

BATCH = 500
SECONDS_TO_WAIT_FOR_A_COMPACTION = 120


@dataclass
class ImportedConversation:
    """What became of one conversation's messages."""

    conversation_id: int
    session_id: str
    created: int = 0
    stored_before: int = 0


@dataclass(frozen=True)
class ImportReport:
    file: str
    conversations: list[ImportedConversation]
    compactions: list[CompactionResult] = field(default_factory=list)


@dataclass
class Importer:
    """Writes a history's entries into the conversations of their sessions."""

    store: ConversationStore
    history: History
    _found: dict[str, ImportedConversation] = field(default_factory=dict)
    _is_compared: bool = False

    def run(self, *, on_batch: Callable[[], None]) -> list[ImportedConversation]:
        """Store everything; each batch in one transaction, before the next is read.

        A message that an earlier run has stored is not stored again; Conflict, before anything is, where the file is
        no longer what that run has read. Raises whatever reading raises, with nothing of that batch stored and the
        ones before it kept.
        """
        size = min(BATCH, self.store.policy.max_batch_messages)
        entries = self.history.entries()
        while batch := list(islice(entries, size)):
            with transaction.atomic():
                self._write(batch)
            on_batch()
        return list(self._found.values())

    def _write(self, batch: list[Entry]) -> None:
        by_session: dict[str, list[Entry]] = {}
        for entry in batch:
            by_session.setdefault(entry.session_id, []).append(entry)
        for session_id, entries in by_session.items():
            conversation = self._conversation(session_id)
            messages = [replace(entry.message, idempotency_key=entry.key) for entry in entries]
            try:
                appended = self.store.append_messages(
                    conversation_id=conversation.conversation_id, messages=messages
                ).messages
            except (Invalid, Conflict) as wrong:
                span = f"{entries[0].where} to {entries[-1].where}"
                raise type(wrong)(f"From {span}: {wrong.detail}", code=wrong.code) from wrong
            conversation.created += sum(message.created for message in appended)
            conversation.stored_before += sum(not message.created for message in appended)

    def _conversation(self, session_id: str) -> ImportedConversation:
        if session_id not in self._found:
            record = self.store.open_conversation(session_id=session_id)
            if record.counters.message_count and not self._is_compared:
                # Something may have been imported before: the whole file is compared with it, once.
                self._is_compared = True
                Comparison(self.store.scope).check(replace(self.history, _file=None).entries())
            self._found[session_id] = ImportedConversation(record.conversation_id, session_id)
        return self._found[session_id]


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="JSON Lines or a JSON list of messages; .gz too.")
    parser.add_argument(
        "--session", metavar="NAME", help="Put all into this session. Default: as the messages say, or the file's name."
    )
    parser.add_argument("--format", choices=list(READERS), help="What the messages look like. Default: found out.")
    parser.add_argument("--compact", action="store_true", help="Compact each conversation when all is stored.")


def _run(session: Session, arguments: Namespace) -> Outcome:
    caller = session.founding_caller
    caller.require(KeyScope.WRITE)
    path = Path(arguments.file)
    history = History(path=path, session=arguments.session or "", format=arguments.format or "")
    importer = Importer(ConversationStore.from_settings(caller.scope), history)
    with progress_bar() as progress:
        reading = progress.add_task("Reading", total=history.size)
        conversations = importer.run(on_batch=lambda: progress.update(reading, completed=history.position))
        compactions = []
        if arguments.compact:
            engine = CompactionEngine.from_settings(caller.scope)
            for each in progress.track(conversations, description="Compacting"):
                compactions.append(_compact(engine, each.conversation_id))
    return Outcome(ImportReport(file=path.name, conversations=conversations, compactions=compactions))


def _compact(engine: CompactionEngine, conversation_id: int) -> CompactionResult:
    """Compact, after whoever is compacting the conversation now: so much news makes workers curious."""
    deadline = time.monotonic() + SECONDS_TO_WAIT_FOR_A_COMPACTION
    while True:
        try:
            return engine.compact(conversation_id=conversation_id)
        except ConversationBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def progress_bar() -> Progress:
    """A bar that shows on a terminal, and leaves nothing behind."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


VERB = Verb(
    "import",
    "Store a history from a file; a second run goes on where the first stopped.",
    _add_arguments,
    _run,
    description=(
        "Store a history from a file: JSON Lines in the neutral form or of OpenAI chat messages, or a list of them. "
        "Messages are stored in batches, each whole or not at all; what was stored before is not stored again."
    ),
)
