"""`lcm user ...`: the people of a workspace."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lcmsite.access import users
from lcmsite.cli.catalogue_verbs import Outcome, Verb
from lcmsite.cli.cli_session import Session
from lcmsite.types import KeyScope, MemberRecord, Role

ROLE_HELP = "What they may do: an operator what a reader may and compact, an admin everything."
ROLES = [role.value for role in Role]


def _name_argument(parser: ArgumentParser) -> None:
    parser.add_argument("username", metavar="NAME", help="The person's user name.")


def _create_arguments(parser: ArgumentParser) -> None:
    _name_argument(parser)
    parser.add_argument("--role", choices=ROLES, default=Role.READER, help=f"{ROLE_HELP} Default: reader.")


def _role_arguments(parser: ArgumentParser) -> None:
    _name_argument(parser)
    # No default here: whoever forgets it would make a reader of an admin.
    parser.add_argument("--role", choices=ROLES, required=True, help=ROLE_HELP)


def _no_arguments(parser: ArgumentParser) -> None:
    """There is nothing to say."""


def _create(session: Session, arguments: Namespace) -> Outcome:
    caller = session.founding_caller
    caller.require(KeyScope.ADMIN)
    return Outcome(users.add(caller.scope, username=arguments.username, role=Role(arguments.role)))


def _list(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    return Outcome(users.members(session.caller.scope))


def _role(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    given = users.set_role(session.caller.scope, username=arguments.username, role=Role(arguments.role))
    return Outcome(given)


def _remove(session: Session, arguments: Namespace) -> Outcome:
    session.caller.require(KeyScope.ADMIN)
    users.remove(session.caller.scope, username=arguments.username)
    remaining: list[MemberRecord] = users.members(session.caller.scope)
    return Outcome(remaining)


def _password(session: Session, arguments: Namespace) -> Outcome:
    session.require_operator()
    return Outcome(users.reset_password(session.caller.scope, username=arguments.username))


VERBS = (
    Verb("user create", "A new person in the workspace; the password is shown this once.", _create_arguments, _create),
    Verb("user list", "The people of the workspace.", _no_arguments, _list),
    Verb("user role", "Make a person a reader, operator or admin here.", _role_arguments, _role),
    Verb("user remove", "Put a person out of the workspace.", _name_argument, _remove),
    Verb("user password", "A new password for a person, shown this once.", _name_argument, _password),
)
