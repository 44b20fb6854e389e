"""`lcm ledger` and `lcm anchor`: histories as verifiable files, and signatures."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from conversations.errors import Conflict, Invalid
from integrity.anchors.anchoring import AnchorService
from integrity.anchors.expectations import Expected
from integrity.anchors.signing import read_public_key
from integrity.ledgers import Ledgers
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.verbs import OUTPUT, STDIO, argument, opened, verb, waiting, write_bytes
from lcmsite.types import KeyScope

PUBLIC_KEY = argument(
    "--public-key",
    metavar="KEY",
    help="The public key that must have signed the anchor: 64 hexadecimal digits, or a file with them or with PEM. "
    "Default: the key in the anchor, which proves only what the holder of that key signed.",
)


@verb(
    "ledger export",
    argument("conversation", nargs="?", metavar="CONVERSATION", help="The conversation's number, id or session."),
    argument("--all", action="store_true", help="Export every conversation of the workspace."),
    OUTPUT,
    argument(
        "--resume",
        action="store_true",
        help="Verify FILE and continue it, if it is incomplete or its conversation has new messages.",
    ),
    argument("--without-files", action="store_true", help="Leave out the bytes of large files."),
)
def export_ledger(session: Session, arguments: Namespace) -> Any:
    """Export one conversation, or all, as JSON Lines (docs/ledger.md).

    --resume verifies and continues a file that is incomplete, or whose conversation has new messages.
    """
    if bool(arguments.conversation) == arguments.all:
        raise Invalid("Name a conversation, or give --all.", code="usage")
    if arguments.resume and arguments.output == STDIO:
        raise Invalid("--resume continues a file; name it with -o.", code="usage")
    ledgers = Ledgers.from_settings(session.caller_with(KeyScope.READ).scope)
    chosen: dict[str, Any] = {
        "conversation_id": _conversation_id(session, arguments.conversation),
        "with_files": not arguments.without_files,
    }
    if arguments.output == STDIO:
        sys.stdout.flush()
        ledgers.export(sys.stdout.buffer, name="standard output", **chosen)
        return None
    path = Path(arguments.output)
    if path.exists() and not arguments.resume:
        raise Conflict(f"{path} already exists; --resume continues it.", code="file_exists")
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
    argument(
        "--live",
        action="store_true",
        help="Verify the database instead of a file: one conversation, or all of the workspace.",
    ),
    argument("--anchor", metavar="ANCHOR", help="Also compare the hash chains with this anchor, made by `lcm anchor`."),
    argument("--expect", metavar="HASH", help="Fail unless the last line has this line_hash, kept from an export."),
    PUBLIC_KEY,
)
def verify_ledger(session: Session, arguments: Namespace) -> Any:
    """Recompute every hash of a ledger, or of the database.

    If somebody changes a history and recomputes all its hashes, this check alone passes. --anchor and --expect detect
    such a change, because they compare with a hash kept elsewhere.
    """
    expected = _read_expected(arguments)
    if arguments.live:
        ledgers = Ledgers.from_settings(session.caller_with(KeyScope.READ).scope)
        with waiting("Verifying ..."):
            conversation_id = _conversation_id(session, arguments.what)
            return ledgers.verify_live(conversation_id=conversation_id, expected=expected)
    if not arguments.what:
        raise Invalid("Name a file, or give --live.", code="usage")
    name = "standard input" if arguments.what == STDIO else Path(arguments.what).name
    with waiting(f"Verifying {name} ..."), opened(arguments.what) as file:
        return Ledgers.from_settings().verify_file(file, name=name, expected=expected)


def _read_expected(arguments: Namespace) -> Expected:
    anchor = None
    if arguments.anchor:
        path = Path(arguments.anchor)
        with opened(path) as file:
            anchor = path.name, file.read()
    return Expected.of(anchor=anchor, trusted_key=arguments.public_key, line_hash=arguments.expect)


@verb(
    "ledger import",
    argument("file", metavar="FILE", help="The ledger; it must verify."),
    argument("--as", dest="session", metavar="SESSION", help="New session id, for a ledger of one conversation only."),
    argument("--skip-existing", action="store_true", help="Skip conversations that already exist."),
)
def import_ledger(session: Session, arguments: Namespace) -> Any:
    """Rebuild the conversations of a ledger, each in one transaction.

    It fails if the ledger does not verify, or if one of its sessions already exists.
    """
    caller = session.caller_with(KeyScope.ADMIN, creates_default=True)
    path = Path(arguments.file)
    with opened(path), waiting(f"Importing {path.name} ..."):
        return Ledgers.from_settings(caller.scope).import_file(
            path, session_id=arguments.session, skip_existing=arguments.skip_existing
        )


def _conversation_id(session: Session, given: str | None) -> int | None:
    return session.conversation_id(given) if given else None


@verb(
    "anchor",
    argument("-o", "--output", metavar="FILE", help="Also write a copy to this file, or to standard output (-)."),
    for_operator=True,
)
def make_anchor(session: Session, arguments: Namespace) -> Any:
    """Sign the last hash of every hash chain: of conversations and the audit log.

    Keep a copy out of reach of those who can write to the database. docs/ledger.md says what an anchor proves.
    """
    service = AnchorService.from_settings(OPERATOR)
    with waiting("Signing ..."):
        report = service.make()
    if arguments.output:
        write_bytes(arguments.output, service.read(Path(report.file))[1])
    return None if arguments.output == STDIO else report


@verb("anchor list", for_operator=True)
def list_anchors(session: Session, arguments: Namespace) -> Any:
    return AnchorService.from_settings(OPERATOR).list_anchors()


@verb(
    "anchor show",
    OUTPUT,
    for_operator=True,
)
def show_anchor(session: Session, arguments: Namespace) -> None:
    write_bytes(arguments.output, AnchorService.from_settings(OPERATOR).read()[1])


@verb("anchor key", for_operator=True)
def show_key(session: Session, arguments: Namespace) -> Any:
    return AnchorService.from_settings(OPERATOR).public_key()


@verb(
    "anchor verify",
    argument(
        "anchor", nargs="?", metavar="ANCHOR", help="The anchor to compare with. Default: the newest one kept here."
    ),
    PUBLIC_KEY,
    for_operator=True,
)
def verify_anchor(session: Session, arguments: Namespace) -> Any:
    """Compare the stored hashes of the whole site with an anchor.

    Exit status 1 if anything differs. Also run `lcm check --all-workspaces`, which computes the hashes from the texts.
    """
    trusted = read_public_key(arguments.public_key) if arguments.public_key else None
    path = Path(arguments.anchor) if arguments.anchor else None
    with waiting("Comparing ..."):
        return AnchorService.from_settings(OPERATOR).verify(path, trusted_key=trusted)
