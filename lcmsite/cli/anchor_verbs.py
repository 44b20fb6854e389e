"""`lcm anchor`: signed heads of all chains, for the operator at the machine."""

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
from lcmsite.cli.catalogue_verbs import Outcome, Verb, waiting
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.show_results import show_one
from lcmsite.cli.terminal_layout import body, safe

STDIO = "-"
PUBLIC_KEY_HELP = (
    "The key that must have signed the anchor: 64 hexadecimal digits, or a file with them or with PEM. Without it the "
    "key in the anchor is used, which proves only what the holder of that key signed."
)


def _make_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("-o", "--output", metavar="FILE", help="Write a copy here, too, or to standard output (-).")


def _make(session: Session, arguments: Namespace) -> Outcome | None:
    session.require_operator()
    service = AnchorService.from_settings(OPERATOR)
    with waiting("the anchor ..."):
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
    parser.add_argument("-o", "--output", metavar="FILE", default=STDIO, help="Default: standard output.")


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
    parser.add_argument("anchor", nargs="?", metavar="ANCHOR", help="Default: the newest in the directory of anchors.")
    parser.add_argument("--public-key", metavar="KEY", help=PUBLIC_KEY_HELP)


def _verify(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    trusted = trusted_key(arguments.public_key) if arguments.public_key else None
    with waiting("comparing ..."):
        verdict = AnchorService.from_settings(OPERATOR).verify(
            Path(arguments.anchor) if arguments.anchor else None, trusted_key=trusted
        )
    return Outcome(verdict, exit_code=0 if verdict.is_clean else FINDINGS_EXIT_CODE)


def _no_arguments(parser: ArgumentParser) -> None:
    """This verb has none of its own."""


def _write(path: Path, content: bytes) -> None:
    try:
        with path.open("xb") as file:
            file.write(content)
    except FileExistsError as refusal:
        raise Conflict(f"{path} is there already.", code="file_exists") from refusal
    except (OSError, ValueError) as refusal:
        why = getattr(refusal, "strerror", None) or refusal
        raise Invalid(f"{path} cannot be written: {why}.", code="unreadable_file") from refusal


def signed_by(public_key: str, *, is_trusted: bool) -> str:
    """What the signature proves, in a sentence."""
    if is_trusted:
        return f"It must be signed with the key {public_key}, which you named."
    return (
        f"It is signed with the key {public_key}, which it names itself: that proves only what the holder of this key "
        "signed. Name the key that you trust with --public-key."
    )


@show_one.register
def _(verdict: AnchorVerdict, console: Console) -> None:
    for finding in verdict.findings:
        body(console, f"{finding.id}: {finding.detail} [{finding.code}]", end="")
    if verdict.finding_count > len(verdict.findings):
        console.print(f"and {counted(verdict.finding_count - len(verdict.findings), 'more finding')}", style="dim")
    unnamed = f" and {verdict.unnamed_conversations:,} that it does not name" if verdict.unnamed_conversations else ""
    console.print(
        safe(
            f"{verdict.source}, made {verdict.made_at} on {verdict.site}: "
            f"{counted(verdict.conversations, 'conversation')}{unnamed}, {counted(verdict.messages, 'message')}, "
            f"{counted(verdict.acts, 'act')}: {'as anchored' if verdict.is_clean else 'not everything is as anchored'}."
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
        "Sign the heads of all chains, and keep the file.",
        _make_arguments,
        _make,
        description="Sign the heads of all conversations' chains and of the audit log's with Ed25519. Keep a copy "
        "where nobody who can write to the database can change it: docs/ledger.md says what it proves.",
    ),
    Verb("anchor list", "The anchors that are kept here, newest first.", _no_arguments, _list),
    Verb("anchor show", "Write the newest anchor as it is.", _show_arguments, _show),
    Verb("anchor key", "The public key that anchors are verified with.", _no_arguments, _key),
    Verb(
        "anchor verify",
        "Compare the stored head of every chain with an anchor.",
        _verify_arguments,
        _verify,
        description="Compare the stored hashes with an anchor, everywhere on this site. Run `lcm check`, too, which "
        "computes them from the texts. Status 1 if something is not as it was anchored.",
    ),
)
