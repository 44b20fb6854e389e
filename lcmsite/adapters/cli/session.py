"""Who types: the operator, in a workspace of their choice, or the holder of an API key, in that key's."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from conversations.append import checked_name
from conversations.errors import Forbidden, Invalid, NotFound
from conversations.models import Workspace
from conversations.scope import Scope
from conversations.store import ConversationStore
from lcmsite.adapters.keys import Caller, caller_of
from lcmsite.types import KeyScope

DEFAULT_WORKSPACE = "default"
SESSION = "session:"


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
            raise NotFound(f"There is no workspace {self._name!r}; `lcm open` and `lcm import` make it.")
        return _operator(row)

    @cached_property
    def founding_caller(self) -> Caller:
        """The same, but the operator's workspace is made if it is not there."""
        if self.api_key:
            return self._holder()
        return _operator(Workspace.objects.get_or_create(name=self._name)[0])

    def require_operator(self) -> None:
        """Forbidden with an API key: its holder has no business outside its workspace."""
        if self.api_key:
            raise Forbidden("This is for the operator at the machine; leave out --api-key and LCM_API_KEY.")

    def conversation_id(self, given: str) -> Any:
        """The number of a conversation named by its number or by its session; `session:7` is the session called 7."""
        if given.isascii() and given.isdigit():
            return given
        store = ConversationStore.from_settings(self.caller.scope)
        return store.find_conversation(session_id=given.removeprefix(SESSION)).conversation_id

    @property
    def _name(self) -> str:
        return checked_workspace(self.workspace or DEFAULT_WORKSPACE)

    def _holder(self) -> Caller:
        caller = caller_of(self.api_key)
        row = caller.scope.narrow(Workspace.objects.all()).get()
        if self.workspace and self.workspace != row.name:
            raise Forbidden("This API key is for another workspace; leave out --workspace and LCM_WORKSPACE.")
        return caller


def checked_workspace(name: str) -> str:
    """The name, if a workspace can have it."""
    try:
        checked_name("A workspace's name", name)
    except ValueError as wrong:
        raise Invalid(str(wrong)) from wrong
    return name


def _operator(workspace: Workspace) -> Caller:
    return Caller(scope=Scope(workspace.pk), key_scopes=frozenset({KeyScope.ADMIN}))
