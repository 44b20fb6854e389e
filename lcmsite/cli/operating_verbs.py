"""Verbs for the operator at the machine: backups, the trigram index, and tools for agents over stdio."""

from __future__ import annotations

import os
import signal
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from django.db import connections

from lcmsite.catalogue.problems import FINDINGS_EXIT_CODE, INTERRUPTED_EXIT_CODE, problem_of
from lcmsite.cli.catalogue_verbs import waiting
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.parser import Outcome, Verb
from lcmsite.effective_settings import EffectiveSettings, settings_in_force
from lcmsite.ops.backup.backups import BackupReport, back_up, restore
from retrieval.policy import RetrievalPolicy
from retrieval.search.patterns import trigrams
from retrieval.search.patterns.trigrams import TrigramIndex


def _backup_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="The directory to write; it must be empty or not exist yet.")
    parser.add_argument(
        "--unverified",
        action="store_true",
        help="Skip the trial restore: faster, but nothing proves that the backup can be restored.",
    )


def _backup(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    with waiting("Backing up ..."):
        report = back_up(Path(arguments.directory), verify=not arguments.unverified, scope=OPERATOR)
    return _outcome(report)


def _restore_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="A directory that `lcm backup` has written.")


def _restore(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    with waiting("Restoring ..."):
        report = restore(Path(arguments.directory), scope=OPERATOR)
    return _outcome(report)


def _outcome(report: BackupReport) -> Outcome:
    return Outcome(report, exit_code=FINDINGS_EXIT_CODE if report.damaged_files else 0)


def _trigram_index(work: Callable[[RetrievalPolicy], TrigramIndex]) -> Callable[[Session, Namespace], Outcome]:
    def run(session: Session, arguments: Namespace) -> Outcome:
        session.require_operator()
        with waiting("Working on the trigram index ..."):
            return Outcome(work(RetrievalPolicy.from_settings()))

    return run


def _settings(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(EffectiveSettings(settings_in_force()))


def _serve_agents(session: Session, arguments: Namespace) -> None:
    try:
        _ = session.founding_caller
    except Exception as refusal:
        # A retryable problem is reported to the agent with each call, any other one here.
        if not problem_of(refusal).retryable:
            raise
    finally:
        connections.close_all()
    # A thread that reads standard input would notice a stop only at the next line; nothing is left half done.
    signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED_EXIT_CODE))
    # Not imported above: the protocol's library takes longer to load than most verbs to run.
    from lcmsite.mcp.stdio import serve

    # A new caller for each call, so that a revoked key stops working at once.
    serve(lambda: replace(session).caller)


VERBS = (
    Verb(
        "settings",
        _settings,
        description="Show every setting with its value and where it comes from: default or environment. Secrets are "
        "not shown. README.md says what each of them does.",
    ),
    Verb(
        "mcp",
        _serve_agents,
        description="Serve the agent tools by the Model Context Protocol on standard input and output, until the "
        "input ends. For a host that starts its servers itself. LCM_API_KEY decides the workspace and the scopes.",
    ),
    Verb(
        "backup",
        _backup,
        _backup_arguments,
        description=back_up.__doc__ or "",
    ),
    Verb(
        "restore",
        _restore,
        _restore_arguments,
        description=restore.__doc__ or "",
    ),
    Verb(
        "trigram-index build",
        _trigram_index(trigrams.build),
        description="Build the trigram index, which makes regular expressions fast. It needs the extension pg_trgm "
        "and makes appends slower.",
    ),
    Verb("trigram-index drop", _trigram_index(trigrams.drop)),
    Verb(
        "trigram-index status",
        _trigram_index(trigrams.status),
    ),
)
