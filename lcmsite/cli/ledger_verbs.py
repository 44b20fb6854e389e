"""`lcm ledger`: export conversations as verifiable files and import them."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from conversations.errors import Conflict, Invalid
from integrity.anchors.expectations import Expected
from integrity.ledgers import Ledgers
from lcmsite.cli.anchor_verbs import PUBLIC_KEY
from lcmsite.cli.cli_session import Session
from lcmsite.cli.verbs import STDIO, argument, opened, verb, waiting
from lcmsite.types import KeyScope


@verb(
    "ledger export",
    argument("conversation", nargs="?", metavar="CONVERSATION", help="The conversation's number or session."),
    argument("--all", action="store_true", help="Export every conversation of the workspace."),
    argument("-o", "--output", metavar="FILE", default=STDIO, help="The file to write. Default: standard output."),
    argument(
        "--resume",
        action="store_true",
        help="Continue FILE where it breaks off, or where the conversation ended when it was written.",
    ),
    argument("--without-files", action="store_true", help="Leave out the bytes of large files."),
)
def export_ledger(session: Session, arguments: Namespace) -> Any:
    """Export one conversation, or all, as JSON Lines (docs/ledger.md).

    With --resume, a file that broke off, or whose conversation has grown, is verified and continued.
    """
    if bool(arguments.conversation) == arguments.all:
        raise Invalid("Name a conversation, or give --all.", code="usage")
    if arguments.resume and arguments.output == STDIO:
        raise Invalid("--resume continues a file; name it with -o.", code="usage")
    ledgers = Ledgers.from_settings(session.caller_with(KeyScope.READ).scope)
    chosen: dict[str, Any] = {
        "conversation_id": _conversation(session, arguments.conversation),
        "with_files": not arguments.without_files,
    }
    if arguments.output == STDIO:
        sys.stdout.flush()
        ledgers.export(sys.stdout.buffer, name="standard output", **chosen)
        return None
    path = Path(arguments.output)
    if path.exists() and not arguments.resume:
        raise Conflict(f"{path} exists already; --resume continues it.", code="file_exists")
    write = ledgers.resume if arguments.resume else ledgers.export
    with waiting(f"Writing {path.name} ..."), opened(path, "r+b" if path.exists() else "x+b") as file:
        report = write(file, name=path.name, **chosen)
        os.fsync(file.fileno())
    return report


@verb(
    "ledger verify",
    argument(
        "what", nargs="?", metavar="FILE", help="The ledger, or - for standard input; with --live, a conversation."
    ),
    argument("--live", action="store_true", help="Verify the database instead of a file: one conversation, or all."),
    argument("--anchor", metavar="ANCHOR", help="Also compare the hash chains with this anchor, made by `lcm anchor`."),
    argument("--expect", metavar="HASH", help="Also require this line_hash of the last line, kept from an export."),
    PUBLIC_KEY,
)
def verify_ledger(session: Session, arguments: Namespace) -> Any:
    """Recompute every hash.

    Somebody who changed a history and recomputed all hashes passes this check; --anchor and --expect catch that,
    because they compare with a hash kept elsewhere.
    """
    expected = _expected(arguments)
    if arguments.live:
        ledgers = Ledgers.from_settings(session.caller_with(KeyScope.READ).scope)
        with waiting("Verifying ..."):
            conversation_id = _conversation(session, arguments.what)
            return ledgers.verify_live(conversation_id=conversation_id, expected=expected)
    if not arguments.what:
        raise Invalid("Name a file, or give --live.", code="usage")
    if arguments.what == STDIO:
        return Ledgers.from_settings().verify_file(sys.stdin.buffer, name="standard input", expected=expected)
    name = Path(arguments.what).name
    with waiting(f"Verifying {name} ..."), opened(arguments.what) as file:
        return Ledgers.from_settings().verify_file(file, name=name, expected=expected)


def _expected(arguments: Namespace) -> Expected:
    anchor = None
    if arguments.anchor:
        with opened(arguments.anchor) as file:
            anchor = Path(arguments.anchor).name, file.read()
    return Expected.of(anchor=anchor, trusted_key=arguments.public_key, line_hash=arguments.expect)


@verb(
    "ledger import",
    argument("file", metavar="FILE", help="The ledger; it must verify."),
    argument("--as", dest="session", metavar="SESSION", help="Store its only conversation in this session."),
    argument("--skip-existing", action="store_true", help="Skip conversations that exist already."),
)
def import_ledger(session: Session, arguments: Namespace) -> Any:
    """Rebuild the conversations of a ledger, each in one transaction.

    A ledger that does not verify is refused, and so is a session that exists already.
    """
    caller = session.caller_with(KeyScope.ADMIN, founding=True)
    path = Path(arguments.file)
    with opened(path), waiting(f"Importing {path.name} ..."):
        return Ledgers.from_settings(caller.scope).import_file(
            path, session_id=arguments.session, skip_existing=arguments.skip_existing
        )


def _conversation(session: Session, given: str | None) -> int | None:
    return int(session.conversation_id(given)) if given else None
