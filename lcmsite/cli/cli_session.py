"""Who types: the operator, in a workspace of their choice, or the holder of an API key, in that key's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from conversations.errors import Forbidden, NotFound
from conversations.models import Workspace
from conversations.scope import Scope
from lcmsite.access.keys import Caller, caller_of
from lcmsite.access.workspaces import checked_workspace
from lcmsite.catalogue.naming import conversation_named
from lcmsite.types import KeyScope

DEFAULT_WORKSPACE = "default"
MOST_NAMED = 20
# Whoever sits at the machine, in all workspaces.
OPERATOR = Scope(actor="operator")


@dataclass(frozen=True)
class Session:
    """One run of the command line, and on whose behalf."""

    workspace: str = ""
    api_key: str = ""

    @cached_property
    def caller(self) -> Caller:
        """Unauthenticated for a bad key; NotFound if the workspace is not there."""
        if self.api_key:
            return self._holder()
        row = Workspace.objects.filter(name=self._name).first()
        if row is None:
            raise self._unknown()
        return _operator(row)

    @cached_property
    def founding_caller(self) -> Caller:
        """The same, but the default workspace is made if it is not there yet.

        No other is: its name was typed, and may have been mistyped.
        """
        if not self.api_key and self._name == DEFAULT_WORKSPACE:
            return _operator(default_workspace())
        return self.caller

    def require_operator(self) -> None:
        """Forbidden with an API key: its holder has no business outside its workspace."""
        if self.api_key:
            raise Forbidden("This is for the operator at the machine; leave out --api-key and LCM_API_KEY.")

    def conversation_id(self, given: str) -> Any:
        """The number of a conversation named by its number or by its session; `session:7` is the session called 7."""
        return conversation_named(given, scope=self.caller.scope)

    @property
    def _name(self) -> str:
        return checked_workspace(self.workspace or DEFAULT_WORKSPACE)

    def _unknown(self) -> NotFound:
        known = list(Workspace.objects.order_by("workspace_id").values_list("name", flat=True)[: MOST_NAMED + 1])
        more = ", and more" if len(known) > MOST_NAMED else ""
        those = f"those there are: {', '.join(known[:MOST_NAMED])}{more}" if known else "there is none yet"
        return NotFound(f"There is no workspace {self._name!r}; {those}. `lcm workspace create NAME` makes one.")

    def _holder(self) -> Caller:
        caller = caller_of(self.api_key)
        row = caller.scope.narrow(Workspace.objects.all()).get()
        if self.workspace and self.workspace != row.name:
            raise Forbidden("This API key is for another workspace; leave out --workspace and LCM_WORKSPACE.")
        return caller


def default_workspace() -> Workspace:
    """The one workspace that needs nobody to make it."""
    return Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)[0]


def _operator(workspace: Workspace) -> Caller:
    return Caller(scope=Scope(workspace.pk, actor="operator"), key_scopes=frozenset({KeyScope.ADMIN}), is_operator=True)
