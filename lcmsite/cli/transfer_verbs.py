"""`lcm import`, `lcm export`, `lcm upload` and `lcm download`."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from compaction.engine import CompactionEngine
from compaction.hosts.branching import Branches
from compaction.run import retrying_while_busy
from compaction.types import CompactionResult
from conversations.errors import Conflict, Invalid
from conversations.files.large_files import LargeFileService
from conversations.files.uploads import UploadService
from conversations.formats import READERS
from conversations.formats.exported import ExportFormat, exported, journal_line
from conversations.store.conversations import ConversationStore
from conversations.store.journal import Journal
from conversations.types import LargeFileRecord, UploadRecord
from lcmsite.cli.cli_session import Session
from lcmsite.cli.verbs import OUTPUT, STDIO, argument, opened, unusable, verb, write_bytes
from lcmsite.importing.discovery_verbs import DIRECTORIES, FoundReport, discover
from lcmsite.importing.history import History
from lcmsite.importing.importer import ImportedConversation, Importer
from lcmsite.importing.sweeping import Sweep
from lcmsite.types import KeyScope

CONVERSATION = argument("conversation", metavar="CONVERSATION", help="The conversation's number, id or session.")
LONGEST_COMPACTION_WAIT_SECONDS = 120


@dataclass(frozen=True)
class ImportReport:
    """What an import stored."""

    file: str
    conversations: list[ImportedConversation]
    compactions: list[CompactionResult] = field(default_factory=list)
    # Lines of a transcript that hold no message, counted by type.
    passed_over: Mapping[str, int] = field(default_factory=dict)
    # The numbers of its lines that are not JSON; they are not stored.
    broken_lines: list[int] = field(default_factory=list)


@verb(
    "import",
    argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="A history, plain or compressed (.gz, .zst), a .zip, or OpenCode's database; - for standard input.",
    ),
    argument(
        "--session",
        metavar="NAME",
        help="Store everything in this session. Default: the session in the messages, or the file's name.",
    ),
    argument("--format", choices=list(READERS), help="The format of the messages. Default: detected."),
    argument(
        "--project",
        metavar="NAME",
        help="The project of all conversations. Default: the transcript's git remote, or its directory.",
    ),
    argument("--compact", action="store_true", help="Compact each conversation after the import."),
    argument(
        "--discover",
        action="store_true",
        help="Find the sessions of all agents on this machine, list them, ask, and import them all.",
    ),
    argument("--yes", action="store_true", help="With --discover: do not ask."),
    DIRECTORIES,
)
def import_history(session: Session, arguments: Namespace) -> ImportReport | FoundReport | Sweep:
    """Import a history from a file: JSON Lines or a JSON list of messages.

    It reads the neutral format, the formats of OpenAI and Anthropic, the transcripts of Claude Code, Codex and pi, and
    the files of OpenCode, Gemini CLI, ChatGPT, Claude.ai, SWE-agent, tau-bench and aider. Messages are stored in
    batches, each completely or not at all. A second run continues where the first stopped, and stores nothing twice. An
    incomplete last line is left for the next run. Broken lines of a transcript are listed, and the others imported.

    With --discover, the sessions of Claude Code, Codex, OpenCode, pi and Gemini CLI are found in their directories, and
    aider's below each --directory. Later runs read only what has changed. If a file is refused, the others are still
    imported, and the exit status is 1.
    """
    if arguments.discover or arguments.file is None:
        if not arguments.discover or arguments.file or arguments.session or arguments.format or arguments.compact:
            raise Invalid("Give a file, or --discover; --discover takes no file, --session, --format or --compact.")
        return discover(session, arguments)
    scope = session.caller_with(KeyScope.WRITE, creates_default=True).scope
    with ExitStack() as stack:
        path = stack.enter_context(_standard_input()) if arguments.file == STDIO else Path(arguments.file)
        history = History(path=path, session=arguments.session or "", format=arguments.format or "")
        progress = stack.enter_context(progress_bar())
        history.opener = lambda path: progress.open(path, "rb", description="Reading")
        store = ConversationStore.from_settings(scope)
        conversations = Importer(store, history, project=arguments.project or "").run()
        compactions = []
        if arguments.compact:
            engine = CompactionEngine.from_settings(scope)
            for each in progress.track(conversations, description="Compacting"):
                compactions.append(_compact(engine, each.conversation_id))
    return ImportReport(history.path.name, conversations, compactions, dict(history.passed_over), history.broken_lines)


@contextmanager
def _standard_input() -> Iterator[Path]:
    """Copy standard input to a temporary file, as an import may read it twice."""
    with TemporaryDirectory(prefix="lcm-import-") as folder:
        path = Path(folder, "stdin")
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield path


def _compact(engine: CompactionEngine, conversation_id: int) -> CompactionResult:
    """Compact, waiting for a worker that is compacting the same conversation.

    Raises ConversationBusy if that takes more than LONGEST_COMPACTION_WAIT_SECONDS.
    """
    again = retrying_while_busy(LONGEST_COMPACTION_WAIT_SECONDS)
    return again(engine.compact, conversation_id=conversation_id)


def progress_bar() -> Progress:
    """A progress bar on a terminal, removed at the end."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


@verb(
    "export",
    CONVERSATION,
    argument("--format", choices=list(ExportFormat), required=True, help="The format to write."),
    argument("--subpath", metavar="NAME", help="With --format journal: the transcript file. Default: the session's."),
    OUTPUT,
)
def export_conversation(session: Session, arguments: Namespace) -> None:
    """Write a conversation as a file: its active path, or its journal.

    claude-code is a transcript for `claude --resume`, which reads it in its folder ~/.claude/projects/PROJECT; openai
    and anthropic are JSON Lines with a message each; markdown is for people; journal is the host's own file, line by
    line. A message imported in a format is exported unchanged in it, and `lcm import` reads all but markdown. `lcm
    ledger export` writes everything that LCM stores of a conversation.
    """
    scope = session.caller_with(KeyScope.READ).scope
    record = ConversationStore.from_settings(scope).get_conversation(
        conversation_id=session.conversation_id(arguments.conversation)
    )
    conversation_id = record.conversation_id
    journal = Journal.from_settings(scope)
    if arguments.format == ExportFormat.JOURNAL:
        found = journal.lines(conversation_id=conversation_id, subpath=arguments.subpath)
        lines: Iterable[str] = map(journal_line, found)
    elif arguments.subpath is not None:
        raise Invalid("--subpath names a transcript file of the journal: give it only with --format journal.")
    else:
        project = record.project or ""
        lines = exported(
            list(Branches.from_settings(scope).messages_on_path(conversation_id=conversation_id)),
            ExportFormat(arguments.format),
            session_id=record.session_id,
            title=record.title or "",
            directory=project if project.startswith("/") else "",
            line_at=lambda place: journal.line(
                conversation_id=conversation_id, subpath=place.subpath, position=place.position
            ),
        )
    write_bytes(arguments.output, "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class DownloadedFile:
    """A file that was saved, with the hash of its bytes."""

    file_id: str
    path: str
    byte_size: int
    sha256: str


@verb(
    "upload",
    CONVERSATION,
    argument("file", metavar="FILE", help="The file to store."),
    argument("--mime-type", metavar="TEXT", help="The MIME type of the file, such as text/csv."),
)
def upload_file(session: Session, arguments: Namespace) -> LargeFileRecord:
    """Store a file in chunks.

    After an interruption the same command continues with the missing chunks, as long as the file is unchanged and the
    upload has not expired (24 hours).
    """
    service = UploadService.from_settings(session.caller_with(KeyScope.WRITE).scope)
    path = Path(arguments.file)
    try:
        with opened(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = file.tell()
            conversation_id = session.conversation_id(arguments.conversation)
            upload = _resumed(service, conversation_id, size=size, digest=digest, name=path.name) or service.begin(
                conversation_id=conversation_id,
                byte_size=size,
                file_name=path.name,
                mime_type=arguments.mime_type,
                sha256=digest,
            )
            return _send(service, upload, file)
    except OSError as refusal:
        raise unusable(path, refusal, "read") from refusal


def _resumed(service: UploadService, conversation_id: int, *, size: int, digest: str, name: str) -> UploadRecord | None:
    """The unfinished upload of the same file, if there is one."""
    uploads = service.list_uploads(conversation_id=conversation_id)
    same = (each for each in uploads if (each.byte_size, each.sha256, each.file_name) == (size, digest, name))
    return next(same, None)


def _send(service: UploadService, upload: UploadRecord, file: BinaryIO) -> LargeFileRecord:
    with progress_bar() as progress:
        task = progress.add_task("Uploading", total=upload.byte_size)
        while upload.missing:
            for offset in upload.missing:
                progress.update(task, completed=upload.chunks_received * upload.chunk_bytes)
                file.seek(offset)
                upload = service.put_chunk(
                    upload_id=upload.upload_id, offset=offset, content=file.read(upload.chunk_bytes)
                )
    return service.finish(upload_id=upload.upload_id)


@verb(
    "download",
    argument("file_id", metavar="ID", help="The file's id, file_... ."),
    argument(
        "target",
        nargs="?",
        metavar="PATH",
        help="Where to save it; - for standard output. Default: its id, in this directory.",
    ),
)
def download_file(session: Session, arguments: Namespace) -> DownloadedFile | None:
    service = LargeFileService.from_settings(session.caller_with(KeyScope.READ).scope)
    # Not the file's own name: another user chose it, and it could be any path.
    target = arguments.target or arguments.file_id
    found = service.stream(file_id=arguments.file_id)
    if target == STDIO:
        for piece in found.pieces():
            sys.stdout.buffer.write(piece)
        return None
    return _save(found.record, found.pieces(), Path(target))


def _save(record: LargeFileRecord, pieces: Iterator[bytes], path: Path) -> DownloadedFile:
    """Save the file completely or not at all; never overwrite an existing file."""
    digest, size = hashlib.sha256(), 0
    unfinished = path.with_name(f".{path.name}.unfinished-{os.getpid()}")
    try:
        if path.exists():
            raise Conflict(f"{path} already exists; choose another path.", code="file_exists")
        with unfinished.open("xb") as file:
            for piece in pieces:
                digest.update(piece)
                size += file.write(piece)
        if record.content_hash not in (None, digest.hexdigest()):
            raise Conflict(f"The bytes of {record.file_id} were altered: run `lcm check`.", code="damaged")
        unfinished.rename(path)
    except OSError as refusal:
        raise unusable(path, refusal, "written") from refusal
    finally:
        unfinished.unlink(missing_ok=True)
    return DownloadedFile(file_id=record.file_id, path=str(path), byte_size=size, sha256=digest.hexdigest())
