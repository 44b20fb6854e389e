"""`lcm ledger`: export conversations as verifiable files, verify them, import them."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from rich.console import Console

from conversations.errors import Conflict, Invalid
from conversations.humanize import counted
from conversations.ledger.types import LedgerReport
from integrity.anchors.expectations import Expected
from integrity.ledgers import Ledgers
from lcmsite.catalogue.problems import FINDINGS_EXIT_CODE
from lcmsite.cli.anchor_verbs import PUBLIC_KEY_HELP, signed_by
from lcmsite.cli.catalogue_verbs import waiting
from lcmsite.cli.cli_session import Session
from lcmsite.cli.parser import Outcome, Verb
from lcmsite.cli.show_results import show_one
from lcmsite.cli.terminal_layout import body, safe
from lcmsite.types import KeyScope

STDIO = "-"


def _export_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("conversation", nargs="?", metavar="CONVERSATION", help="The conversation's number or session.")
    parser.add_argument("--all", action="store_true", help="Export every conversation of the workspace.")
    parser.add_argument(
        "-o", "--output", metavar="FILE", default=STDIO, help="The file to write. Default: standard output."
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="Continue FILE where it breaks off, or where the conversation ended when it was written.",
    )
    parser.add_argument("--without-files", action="store_true", help="Leave out the bytes of large files.")


def _export(session: Session, arguments: Namespace) -> Outcome | None:
    if bool(arguments.conversation) == arguments.all:
        raise Invalid("Name a conversation, or give --all.", code="usage")
    if arguments.resume and arguments.output == STDIO:
        raise Invalid("--resume continues a file; name it with -o.", code="usage")
    session.caller.require(KeyScope.READ)
    ledgers = Ledgers.from_settings(session.caller.scope)
    conversation_id = _conversation(session, arguments.conversation)
    with_files = not arguments.without_files
    if arguments.output == STDIO:
        sys.stdout.flush()
        ledgers.export(
            sys.stdout.buffer, name="standard output", conversation_id=conversation_id, with_files=with_files
        )
        return None
    path = Path(arguments.output)
    with waiting(f"Writing {path.name} ..."), _opened(path, is_resumed=arguments.resume) as file:
        write = ledgers.resume if arguments.resume else ledgers.export
        report = write(file, name=path.name, conversation_id=conversation_id, with_files=with_files)
        os.fsync(file.fileno())
    return Outcome(report)


@contextmanager
def _opened(path: Path, *, is_resumed: bool) -> Iterator[BinaryIO]:
    """The file to write to; --resume continues it after an export that failed."""
    try:
        if path.exists() and not is_resumed:
            raise Conflict(f"{path} exists already; --resume continues it.", code="file_exists")
        file = path.open("r+b" if path.exists() else "x+b")
    except (OSError, ValueError) as refusal:
        raise _unusable(path, refusal) from refusal
    with file:
        yield file


def _verify_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what", nargs="?", metavar="FILE", help="The ledger, or - for standard input; with --live, a conversation."
    )
    parser.add_argument(
        "--live", action="store_true", help="Verify the database instead of a file: one conversation, or all."
    )
    parser.add_argument(
        "--anchor", metavar="ANCHOR", help="Also compare the hash chains with this anchor, made by `lcm anchor`."
    )
    parser.add_argument(
        "--expect", metavar="HASH", help="Also require this line_hash of the last line, kept from an export."
    )
    parser.add_argument("--public-key", metavar="KEY", help=PUBLIC_KEY_HELP)


def _verify(session: Session, arguments: Namespace) -> Outcome:
    expected = _expected(arguments)
    if arguments.live:
        session.caller.require(KeyScope.READ)
        ledgers = Ledgers.from_settings(session.caller.scope)
        with waiting("Verifying ..."):
            conversation_id = _conversation(session, arguments.what)
            report = ledgers.verify_live(conversation_id=conversation_id, expected=expected)
    elif not arguments.what:
        raise Invalid("Name a file, or give --live.", code="usage")
    elif arguments.what == STDIO:
        report = Ledgers.from_settings().verify_file(sys.stdin.buffer, name="standard input", expected=expected)
    else:
        path = Path(arguments.what)
        with waiting(f"Verifying {path.name} ..."), _read(path) as file:
            report = Ledgers.from_settings().verify_file(file, name=path.name, expected=expected)
    return Outcome(report, exit_code=0 if report.is_clean else FINDINGS_EXIT_CODE)


def _expected(arguments: Namespace) -> Expected:
    anchor = None
    if arguments.anchor:
        path = Path(arguments.anchor)
        with _read(path) as file:
            anchor = path.name, file.read()
    return Expected.of(anchor=anchor, trusted_key=arguments.public_key, line_hash=arguments.expect)


@contextmanager
def _read(path: Path) -> Iterator[BinaryIO]:
    try:
        file = path.open("rb")
    except (OSError, ValueError) as refusal:
        raise _unusable(path, refusal) from refusal
    with file:
        yield file


def _import_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="The ledger; it must verify.")
    parser.add_argument("--as", dest="session", metavar="SESSION", help="Store its only conversation in this session.")
    parser.add_argument("--skip-existing", action="store_true", help="Skip conversations that exist already.")


def _import(session: Session, arguments: Namespace) -> Outcome:
    caller = session.founding_caller
    caller.require(KeyScope.ADMIN)
    path = Path(arguments.file)
    with _read(path), waiting(f"Importing {path.name} ..."):
        report = Ledgers.from_settings(caller.scope).import_file(
            path, session_id=arguments.session, skip_existing=arguments.skip_existing
        )
    return Outcome(report)


def _conversation(session: Session, given: str | None) -> int | None:
    return int(session.conversation_id(given)) if given else None


def _unusable(path: Path, refusal: Exception) -> Invalid:
    why = getattr(refusal, "strerror", None) or refusal
    return Invalid(f"{path} cannot be opened: {why}.", code="unreadable_file")


@show_one.register
def _(report: LedgerReport, console: Console) -> None:
    for finding in report.findings:
        # A finding without a line is about the anchor itself.
        where = f"line {finding.line}: " if finding.line else ""
        body(console, f"{where}{finding.detail} [{finding.code}]", end="")
    if report.finding_count > len(report.findings):
        console.print(f"and {counted(report.finding_count - len(report.findings), 'more finding')}", style="dim")
    verdict = "everything holds" if report.is_clean else "not everything holds"
    console.print(
        f"{counted(report.lines, 'line')}, {counted(report.conversations, 'conversation')}, "
        f"{counted(report.counts.messages, 'message')}, "
        f"{counted(report.counts.summaries, 'summary', 'summaries')}: {verdict}.",
        style="dim",
    )
    console.print(f"The last line_hash is {report.line_hash or 'none'}.", style="dim", soft_wrap=True)
    if report.anchor is not None:
        anchor = report.anchor
        unnamed = f", {anchor.unnamed_conversations:,} not in the anchor" if anchor.unnamed_conversations else ""
        console.print(
            safe(
                f"Compared with the anchor of {anchor.made_at} from {anchor.site}: "
                f"{counted(anchor.conversations, 'conversation')}{unnamed}. "
                + signed_by(anchor.public_key, is_trusted=anchor.key_is_trusted)
            ),
            style="dim",
            soft_wrap=True,
        )


VERBS = (
    Verb(
        "ledger export",
        _export,
        _export_arguments,
        description="Export one conversation, or all, as a ledger: JSON Lines in the format of docs/ledger.md. With "
        "--resume, a file that broke off, or whose conversation has grown, is verified and continued.",
    ),
    Verb(
        "ledger verify",
        _verify,
        _verify_arguments,
        description="Recompute every hash. Somebody who changed a history and recomputed all hashes passes this "
        "check; --anchor and --expect catch that, because they compare with a hash kept elsewhere.",
    ),
    Verb(
        "ledger import",
        _import,
        _import_arguments,
        description="Rebuild the conversations of a ledger with their active context, each in one transaction. A "
        "ledger that does not verify is refused, and so is a session that exists already.",
    ),
)
