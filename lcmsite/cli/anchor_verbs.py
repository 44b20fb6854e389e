"""`lcm anchor`: sign the heads of all hash chains and verify them later."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from rich.console import Console

from conversations.errors import Conflict, Invalid
from conversations.humanize import counted
from integrity.anchors.anchoring import AnchorService
from integrity.anchors.signing import trusted_key
from integrity.anchors.types import AnchorVerdict, PublicKey
from lcmsite.catalogue.problems import FINDINGS_EXIT_CODE
from lcmsite.cli.catalogue_verbs import waiting
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.parser import Outcome, Verb
from lcmsite.cli.show_results import show_one
from lcmsite.cli.terminal_layout import body, safe

STDIO = "-"
PUBLIC_KEY_HELP = (
    "The public key that must have signed the anchor: 64 hexadecimal digits, or a file with them or with PEM. Without "
    "it the key in the anchor is used, which proves only what the holder of that key signed."
)


def _make_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="Also write a copy to this file, or to standard output (-)."
    )


def _make(session: Session, arguments: Namespace) -> Outcome | None:
    session.require_operator()
    service = AnchorService.from_settings(OPERATOR)
    with waiting("Signing ..."):
        report = service.make()
    if not arguments.output:
        return Outcome(report)
    _, content = service.read(Path(report.file))
    if arguments.output == STDIO:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        return None
    _write(Path(arguments.output), content)
    return Outcome(report)


def _list(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(AnchorService.from_settings(OPERATOR).list_anchors())


def _show_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", metavar="FILE", default=STDIO, help="The file to write. Default: standard output."
    )


def _show(session: Session, arguments: Namespace) -> None:
    session.require_operator()
    _, content = AnchorService.from_settings(OPERATOR).read()
    if arguments.output == STDIO:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
    else:
        _write(Path(arguments.output), content)


def _key(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(AnchorService.from_settings(OPERATOR).public_key())


def _verify_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "anchor", nargs="?", metavar="ANCHOR", help="The anchor to compare with. Default: the newest one kept here."
    )
    parser.add_argument("--public-key", metavar="KEY", help=PUBLIC_KEY_HELP)


def _verify(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    trusted = trusted_key(arguments.public_key) if arguments.public_key else None
    with waiting("Comparing ..."):
        verdict = AnchorService.from_settings(OPERATOR).verify(
            Path(arguments.anchor) if arguments.anchor else None, trusted_key=trusted
        )
    return Outcome(verdict, exit_code=0 if verdict.is_clean else FINDINGS_EXIT_CODE)


def _write(path: Path, content: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as refusal:
        raise Conflict(f"{path} exists already.", code="file_exists") from refusal
    except (OSError, ValueError) as refusal:
        why = getattr(refusal, "strerror", None) or refusal
        raise Invalid(f"{path} cannot be written: {why}.", code="unreadable_file") from refusal


def signed_by(public_key: str, *, is_trusted: bool) -> str:
    """What the signature proves, as a sentence."""
    if is_trusted:
        return f"Signed with the trusted key {public_key}."
    return (
        f"Signed with the key {public_key}, which comes from the anchor itself: this proves only what the holder of "
        "that key signed. Give the key you trust with --public-key."
    )


@show_one.register
def _(verdict: AnchorVerdict, console: Console) -> None:
    for finding in verdict.findings:
        body(console, f"{finding.id}: {finding.detail} [{finding.code}]", end="")
    if verdict.finding_count > len(verdict.findings):
        console.print(f"and {counted(verdict.finding_count - len(verdict.findings), 'more finding')}", style="dim")
    unnamed = f" and {verdict.unnamed_conversations:,} not in the anchor" if verdict.unnamed_conversations else ""
    console.print(
        safe(
            f"{verdict.source}, made {verdict.made_at} on {verdict.site}: "
            f"{counted(verdict.conversations, 'conversation')}{unnamed}, {counted(verdict.messages, 'message')}, "
            f"{counted(verdict.acts, 'act')}: {'as anchored' if verdict.is_clean else 'differences found'}."
        ),
        style="dim",
        soft_wrap=True,
    )
    console.print(signed_by(verdict.public_key, is_trusted=verdict.key_is_trusted), style="dim", soft_wrap=True)


@show_one.register
def _(key: PublicKey, console: Console) -> None:
    console.print(key.public_key, soft_wrap=True)
    console.print(key.pem, end="")
    console.print(safe(f"The private key is in {key.key_file}."), style="dim", soft_wrap=True)


VERBS = (
    Verb(
        "anchor",
        _make,
        _make_arguments,
        description="Sign the heads of the hash chains of all conversations and of the audit log with Ed25519. Keep a "
        "copy where nobody with access to the database can change it. docs/ledger.md explains what it proves.",
    ),
    Verb("anchor list", _list),
    Verb("anchor show", _show, _show_arguments),
    Verb("anchor key", _key),
    Verb(
        "anchor verify",
        _verify,
        _verify_arguments,
        description="Compare the stored hashes of the whole site with an anchor. Also run `lcm check`, which computes "
        "the hashes from the texts. Exit status 1 if anything differs from the anchor.",
    ),
)
