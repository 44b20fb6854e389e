"""`lcm backup` and `lcm restore`: for the operator at the machine."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from lcmsite.catalogue.problems import FINDINGS_EXIT_CODE
from lcmsite.cli.catalogue_verbs import Outcome, Verb, waiting
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.ops.backup.create_backup import BackupReport, back_up
from lcmsite.ops.backup.restore_backup import restore


def _backup_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="Where to; it must be empty, or not there yet.")
    parser.add_argument(
        "--unverified", action="store_true", help="Do not restore it on trial: faster, and a backup nobody has tried."
    )


def _backup(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    with waiting("the backup ..."):
        report = back_up(Path(arguments.directory), verify=not arguments.unverified, scope=OPERATOR)
    return _outcome(report)


def _restore_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="A directory that `lcm backup` has made.")


def _restore(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    with waiting("the backup to be restored ..."):
        report = restore(Path(arguments.directory), scope=OPERATOR)
    return _outcome(report)


def _outcome(report: BackupReport) -> Outcome:
    return Outcome(report, exit_code=FINDINGS_EXIT_CODE if report.damaged_files else 0)


VERBS = (
    Verb(
        "backup", "Everything into a directory, proved by a trial.", _backup_arguments, _backup, back_up.__doc__ or ""
    ),
    Verb("restore", "A backup into an empty database.", _restore_arguments, _restore, restore.__doc__ or ""),
)
