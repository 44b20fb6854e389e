"""Verbs for whoever runs LCM: workspaces, and the keys that let others in."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from datetime import datetime, timedelta

from django.utils import timezone

from conversations.errors import Invalid
from conversations.models import Workspace
from lcmsite.access import keys, workspaces
from lcmsite.cli.catalogue_verbs import Outcome, Verb, waiting
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.types import KeyScope
from retrieval.policy import RetrievalPolicy
from retrieval.search.patterns import trigrams
from retrieval.search.patterns.trigrams import TrigramIndex

MOST_DAYS = 36_500


def _no_arguments(parser: ArgumentParser) -> None:
    """There is nothing to say."""


def _create_key_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="What the key is for.")
    parser.add_argument(
        "--scope",
        action="append",
        choices=[scope.value for scope in KeyScope],
        help="What it may do: write includes read, admin includes both. Default: read.",
    )
    parser.add_argument("--days", metavar="N", help="After how many days it expires. Default: never.")


def _create_key(session: Session, arguments: Namespace) -> Outcome:
    caller = session.founding_caller
    caller.require(KeyScope.ADMIN)
    issued = keys.issue(
        workspace_id=caller.scope.narrow(Workspace.objects.all()).get().pk,
        name=arguments.name,
        scopes=arguments.scope or [KeyScope.READ],
        expires_at=_in_days(arguments.days) if arguments.days else None,
        by=caller.scope,
    )
    return Outcome(issued)


def _in_days(text: str) -> datetime:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_DAYS):
        raise Invalid(f"--days takes a whole number from 1 to {MOST_DAYS}.")
    return timezone.now() + timedelta(days=int(text))


def _list_keys(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    return Outcome(keys.list_keys(session.caller.scope))


def _revoke_key_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("key", metavar="KEY", help="Its id or how it begins, as `lcm key list` shows them.")


def _revoke_key(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    return Outcome(keys.revoke(session.caller.scope, key=arguments.key))


def _create_workspace_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="The name of the new workspace.")


def _create_workspace(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(workspaces.create(OPERATOR, name=arguments.name))


def _list_workspaces(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(workspaces.everywhere())


def _trigram_index(work: Callable[[RetrievalPolicy], TrigramIndex]) -> Callable[[Session, Namespace], Outcome]:
    def run(session: Session, arguments: Namespace) -> Outcome:
        session.require_operator()
        with waiting("the index of trigrams ..."):
            return Outcome(work(RetrievalPolicy.from_settings()))

    return run


VERBS = (
    Verb("key create", "A new API key for the workspace, shown this once.", _create_key_arguments, _create_key),
    Verb("key list", "The workspace's API keys.", _no_arguments, _list_keys),
    Verb("key revoke", "Take an API key back, for good.", _revoke_key_arguments, _revoke_key),
    Verb("workspace create", "A new workspace.", _create_workspace_arguments, _create_workspace),
    Verb("workspace list", "All workspaces.", _no_arguments, _list_workspaces),
    Verb(
        "trigram-index build",
        "Make regular expressions fast; needs pg_trgm, and slows appends.",
        _no_arguments,
        _trigram_index(trigrams.build),
    ),
    Verb("trigram-index drop", "Remove the index again.", _no_arguments, _trigram_index(trigrams.drop)),
    Verb(
        "trigram-index status",
        "Whether it can be had, is there, and is used.",
        _no_arguments,
        _trigram_index(trigrams.status),
    ),
)
