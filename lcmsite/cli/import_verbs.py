"""`lcm import`: a history from a file, in batches, each stored whole or not at all, so that a second run goes on."""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from compaction.engine import CompactionEngine
from compaction.types import CompactionResult
from conversations.errors import ConversationBusy
from conversations.formats import READERS
from conversations.store.conversations import ConversationStore
from lcmsite.cli.catalogue_verbs import Outcome, Verb
from lcmsite.cli.cli_session import Session
from lcmsite.importing.history import History
from lcmsite.importing.importer import ImportedConversation, Importer
from lcmsite.types import KeyScope

SECONDS_TO_WAIT_FOR_A_COMPACTION = 120


@dataclass(frozen=True)
class ImportReport:
    file: str
    conversations: list[ImportedConversation]
    compactions: list[CompactionResult] = field(default_factory=list)
    # Lines of a transcript that hold no message, by their type.
    passed_over: Mapping[str, int] = field(default_factory=dict)


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
    return Outcome(
        ImportReport(
            file=path.name, conversations=conversations, compactions=compactions, passed_over=dict(history.passed_over)
        )
    )


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
        "Store a history from a file: JSON Lines of messages, in the neutral form or as OpenAI or Anthropic have them, "
        "or a list of such; or the transcript of Claude Code, Codex or pi. Messages are stored in batches, each whole "
        "or not at all; what was stored before is not stored again."
    ),
)
