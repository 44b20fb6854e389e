"""`lcm workspace`, `lcm key` and `lcm user`: who may use this site."""

from __future__ import annotations

from argparse import Namespace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from conversations.errors import Invalid
from lcmsite.access import keys, users, workspaces
from lcmsite.cli.cli_session import OPERATOR, Session
from lcmsite.cli.verbs import argument, verb
from lcmsite.types import KeyScope, Role

MOST_DAYS = 36_500
ROLE_HELP = "The user's role in the workspace: a reader reads, an operator also writes, an admin does everything."
ROLES = [role.value for role in Role]
USERNAME = argument("username", metavar="NAME", help="The user name.")


@verb("workspace create", argument("name", metavar="NAME", help="The name of the new workspace."), for_operator=True)
def create_workspace(session: Session, arguments: Namespace) -> Any:
    return workspaces.create(OPERATOR, name=arguments.name)


@verb("workspace list", for_operator=True)
def list_workspaces(session: Session, arguments: Namespace) -> Any:
    return workspaces.list_all()


@verb(
    "key create",
    argument("name", metavar="NAME", help="A name for the key, such as its user."),
    argument(
        "--scope",
        action="append",
        choices=[scope.value for scope in KeyScope],
        help="What the key may do: write includes read, admin includes both. Default: read.",
    ),
    argument("--days", metavar="N", help="The key expires after this many days. Default: never."),
)
def create_key(session: Session, arguments: Namespace) -> Any:
    caller = session.caller_with(KeyScope.ADMIN, creates_default=True)
    return keys.issue(
        workspace_id=caller.workspace().pk,
        name=arguments.name,
        scopes=arguments.scope or [KeyScope.READ],
        expires_at=_in_days(arguments.days) if arguments.days else None,
        by=caller.scope,
    )


def _in_days(text: str) -> datetime:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= MOST_DAYS):
        raise Invalid(f"--days must be a whole number from 1 to {MOST_DAYS}.")
    return timezone.now() + timedelta(days=int(text))


@verb("key list")
def list_keys(session: Session, arguments: Namespace) -> Any:
    return keys.list_keys(session.caller_with(KeyScope.ADMIN).scope)


@verb("key revoke", argument("key", metavar="KEY", help="The key's id or prefix, as `lcm key list` shows them."))
def revoke_key(session: Session, arguments: Namespace) -> Any:
    return keys.revoke(session.caller_with(KeyScope.ADMIN).scope, key=arguments.key)


@verb(
    "user create",
    USERNAME,
    argument("--role", choices=ROLES, default=Role.READER, help=f"{ROLE_HELP} Default: reader."),
)
def create_user(session: Session, arguments: Namespace) -> Any:
    caller = session.caller_with(KeyScope.ADMIN, creates_default=True)
    return users.add(caller.scope, username=arguments.username, role=Role(arguments.role))


@verb("user list")
def list_users(session: Session, arguments: Namespace) -> Any:
    return users.list_members(session.caller_with(KeyScope.ADMIN).scope)


# No default role: a forgotten option must not turn an admin into a reader.
@verb("user role", USERNAME, argument("--role", choices=ROLES, required=True, help=ROLE_HELP))
def set_role(session: Session, arguments: Namespace) -> Any:
    scope = session.caller_with(KeyScope.ADMIN).scope
    return users.set_role(scope, username=arguments.username, role=Role(arguments.role))


@verb("user remove", USERNAME)
def remove_user(session: Session, arguments: Namespace) -> Any:
    scope = session.caller_with(KeyScope.ADMIN).scope
    users.remove(scope, username=arguments.username)
    return users.list_members(scope)


@verb("user password", USERNAME, for_operator=True)
def reset_password(session: Session, arguments: Namespace) -> Any:
    return users.reset_password(session.caller.scope, username=arguments.username)
