"""`lcm anchor`: sign the heads of all hash chains and verify them later."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from integrity.anchors.anchoring import AnchorService
from integrity.anchors.signing import trusted_key
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.verbs import STDIO, argument, verb, waiting, write_bytes

PUBLIC_KEY = argument(
    "--public-key",
    metavar="KEY",
    help="The public key that must have signed the anchor: 64 hexadecimal digits, or a file with them or with PEM. "
    "Without it the key in the anchor is used, which proves only what the holder of that key signed.",
)


@verb(
    "anchor",
    argument("-o", "--output", metavar="FILE", help="Also write a copy to this file, or to standard output (-)."),
    for_operator=True,
)
def make_anchor(session: Session, arguments: Namespace) -> Any:
    """Sign the heads of all hash chains, of conversations and the audit log.

    Keep a copy out of reach of those who can write to the database. What it proves is in docs/ledger.md.
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
    argument("-o", "--output", metavar="FILE", default=STDIO, help="The file to write. Default: standard output."),
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

    Also run `lcm check`, which computes the hashes from the texts. Exit status 1 if anything differs from the anchor.
    """
    trusted = trusted_key(arguments.public_key) if arguments.public_key else None
    path = Path(arguments.anchor) if arguments.anchor else None
    with waiting("Comparing ..."):
        return AnchorService.from_settings(OPERATOR).verify(path, trusted_key=trusted)
