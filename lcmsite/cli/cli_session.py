"""The caller of a command: the site administrator, or the holder of an API key."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from conversations.errors import Forbidden, NotFound
from conversations.models import Workspace
from conversations.scope import Scope, conversation_named
from lcmsite.access.keys import Caller, caller_of
from lcmsite.access.workspaces import checked_workspace
from lcmsite.types import KeyScope

DEFAULT_WORKSPACE = "default"
MOST_LISTED = 20
# The site administrator at the machine, in all workspaces.
OPERATOR = Scope(actor="operator")


@dataclass(frozen=True)
class Session:
    """One run of the command line and its caller."""

    workspace: str = ""
    api_key: str = ""

    @cached_property
    def caller(self) -> Caller:
        """The caller; Unauthenticated for a bad key, NotFound for an unknown workspace."""
        if self.api_key:
            caller = caller_of(self.api_key)
            if self.workspace and self.workspace != caller.workspace().name:
                raise Forbidden("This API key is for another workspace; leave out --workspace and LCM_WORKSPACE.")
            return caller
        row = Workspace.objects.filter(name=self._name).first()
        if row is None:
            raise self._unknown()
        return _operator(row)

    @cached_property
    def default_creating_caller(self) -> Caller:
        """The caller; the default workspace is created if it does not exist yet.

        Any other workspace must exist: a name on the command line may be mistyped.
        """
        if not self.api_key and self._name == DEFAULT_WORKSPACE:
            return _operator(default_workspace())
        return self.caller

    def caller_with(self, scope: KeyScope, *, creates_default: bool = False) -> Caller:
        """The caller; Forbidden if its key lacks the scope."""
        caller = self.default_creating_caller if creates_default else self.caller
        caller.require(scope)
        return caller

    def require_operator(self) -> None:
        """Raise Forbidden for the holder of an API key."""
        if self.api_key:
            raise Forbidden("Only the site administrator may do this. Leave out --api-key and unset LCM_API_KEY.")

    def conversation_id(self, given: str) -> int:
        """The number of a conversation given by its number, id or session."""
        return conversation_named(given, scope=self.caller.scope)

    @property
    def _name(self) -> str:
        return checked_workspace(self.workspace or DEFAULT_WORKSPACE)

    def _unknown(self) -> NotFound:
        known = list(Workspace.objects.order_by("workspace_id").values_list("name", flat=True)[: MOST_LISTED + 1])
        more = ", and more" if len(known) > MOST_LISTED else ""
        those = f"Existing workspaces: {', '.join(known[:MOST_LISTED])}{more}." if known else "There is none yet."
        return NotFound(f"There is no workspace {self._name!r}. {those} `lcm workspace create NAME` creates one.")


def default_workspace() -> Workspace:
    """The workspace `default`, created at its first use."""
    return Workspace.objects.get_or_create(name=DEFAULT_WORKSPACE)[0]


def _operator(workspace: Workspace) -> Caller:
    return Caller(scope=Scope(workspace.pk, actor="operator"), key_scopes=frozenset({KeyScope.ADMIN}), is_operator=True)
