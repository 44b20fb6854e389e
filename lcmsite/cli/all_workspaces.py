"""Let a verb that checks one workspace check every workspace of the site."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from conversations.errors import Invalid
from conversations.models import Workspace
from lcmsite.cli.cli_session import Session
from lcmsite.cli.terminal_layout import Screen, show_one
from lcmsite.cli.verbs import Verb

# The verbs, each with the argument that names a single conversation.
CHECKS = {"check": "conversation_id", "ledger verify": "what"}


@dataclass(frozen=True)
class WorkspaceCheck:
    """The result of a check of one workspace: a report, or a queued scan."""

    workspace: str
    result: Any


@dataclass(frozen=True)
class SiteCheck:
    """The results of a check of every workspace."""

    is_clean: bool
    workspaces: tuple[WorkspaceCheck, ...]


def over_all_workspaces(verb: Verb) -> Verb:
    """The verb with --all-workspaces, which runs it once in each workspace."""

    def add_arguments(parser: ArgumentParser) -> None:
        verb.add_arguments(parser)
        parser.add_argument(
            "--all-workspaces",
            action="store_true",
            help="Check every workspace, as the site administrator. Default: only the workspace in use.",
        )

    def run(session: Session, arguments: Namespace) -> Any:
        given = vars(arguments)
        if not given.pop("all_workspaces"):
            return verb.run(session, arguments)
        session.require_operator()
        if not given.get("live", True):
            raise Invalid("--all-workspaces goes with --live.", code="usage")
        if given.get("anchor") or given.get("expect"):
            # A workspace without anchored conversations would fail.
            raise Invalid(
                "--anchor and --expect are for one workspace; `lcm anchor verify` compares all of them.", code="usage"
            )
        if given.get(CHECKS[verb.name]):
            raise Invalid("Give either one name or --all-workspaces.", code="usage")
        names = Workspace.objects.order_by("workspace_id").values_list("name", flat=True)
        checks = tuple(WorkspaceCheck(name, verb.run(Session(name), arguments)) for name in names)
        return SiteCheck(all(getattr(each.result, "is_clean", True) for each in checks), checks)

    return replace(verb, run=run, add_arguments=add_arguments)


@show_one.register
def _(site: SiteCheck, screen: Screen) -> None:
    for check in site.workspaces:
        screen.line(f"workspace {check.workspace}", style="bold")
        show_one(check.result, replace(screen, workspace=partial(str, check.workspace)))
    if not site.workspaces:
        screen.line("There is no workspace yet.")
