"""`lcm workspace`, `lcm key` and `lcm user`: who may use this site."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import datetime, timedelta

from django.utils import timezone

from conversations.errors import Invalid
from conversations.models import Workspace
from lcmsite.access import keys, users, workspaces
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.parser import Outcome, Verb
from lcmsite.types import KeyScope, Role

MOST_DAYS = 36_500
ROLE_HELP = "What the user may do: a reader reads, an operator also compacts, an admin does everything."
ROLES = [role.value for role in Role]


def _create_workspace_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="The name of the new workspace.")


def _create_workspace(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(workspaces.create(OPERATOR, name=arguments.name))


def _list_workspaces(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(workspaces.everywhere())


def _create_key_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="A name for the key, such as its user.")
    parser.add_argument(
        "--scope",
        action="append",
        choices=[scope.value for scope in KeyScope],
        help="What the key may do: write includes read, admin includes both. Default: read.",
    )
    parser.add_argument("--days", metavar="N", help="The key expires after this many days. Default: never.")


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
    parser.add_argument("key", metavar="KEY", help="The key's id or prefix, as `lcm key list` shows them.")


def _revoke_key(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    return Outcome(keys.revoke(session.caller.scope, key=arguments.key))


def _user_argument(parser: ArgumentParser) -> None:
    parser.add_argument("username", metavar="NAME", help="The user name.")


def _create_user_arguments(parser: ArgumentParser) -> None:
    _user_argument(parser)
    parser.add_argument("--role", choices=ROLES, default=Role.READER, help=f"{ROLE_HELP} Default: reader.")


def _create_user(session: Session, arguments: Namespace) -> Outcome:
    caller = session.founding_caller
    caller.require(KeyScope.ADMIN)
    return Outcome(users.add(caller.scope, username=arguments.username, role=Role(arguments.role)))


def _list_users(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    return Outcome(users.members(session.caller.scope))


def _set_role_arguments(parser: ArgumentParser) -> None:
    _user_argument(parser)
    # No default: a forgotten option must not turn an admin into a reader.
    parser.add_argument("--role", choices=ROLES, required=True, help=ROLE_HELP)


def _set_role(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    return Outcome(users.set_role(session.caller.scope, username=arguments.username, role=Role(arguments.role)))


def _remove_user(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    users.remove(session.caller.scope, username=arguments.username)
    return Outcome(users.members(session.caller.scope))


def _reset_password(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(users.reset_password(session.caller.scope, username=arguments.username))


VERBS = (
    Verb("workspace create", _create_workspace, _create_workspace_arguments),
    Verb("workspace list", _list_workspaces),
    Verb("key create", _create_key, _create_key_arguments),
    Verb("key list", _list_keys),
    Verb("key revoke", _revoke_key, _revoke_key_arguments),
    Verb("user create", _create_user, _create_user_arguments),
    Verb("user list", _list_users),
    Verb("user role", _set_role, _set_role_arguments),
    Verb("user remove", _remove_user, _user_argument),
    Verb("user password", _reset_password, _user_argument),
)
