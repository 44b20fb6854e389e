"""Narrow every query to the workspace of the caller."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Self, TypeVar

from django.db.models import Model, Q, QuerySet

from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid, NotFound
from conversations.fast.lookup import OneRow
from conversations.models import Conversation, LargeFile, Message, Summary
from conversations.sql import is_askable

M = TypeVar("M", bound=Model)

# Kinds of ids by prefix: the error for an id of another kind names that kind, whether the id exists or not.
_KINDS = {
    "sum_": "summary",
    "ses_": "session summary",
    "msg_": "message",
    "file_": "file",
    "run_": "run",
    "map_": "map run",
    "conv_": "conversation",
}
# The tools that show each kind of id; all other kinds: lcm_describe alone.
_SHOWN_BY = {
    "summary": "lcm_describe shows it, and lcm_expand opens it",
    "session summary": "lcm_describe shows it, and lcm_expand_session opens it",
    "map run": "lcm_map_status shows it",
}
# The lookup from each model to its workspace; other models belong to a conversation.
_PATHS = {
    "Workspace": "workspace_id",
    "Conversation": "workspace_id",
    "Project": "workspace_id",
    "SessionSummary": "workspace_id",
    "HistoryJob": "workspace_id",
    "Grant": "workspace_id",
    "MapRun": "workspace_id",
    "MapItem": "run__workspace_id",
    "MapEvent": "workspace_id",
    "AuditEntry": "workspace_id",
    "IntegrityReport": "workspace_id",
    "IntegrityScan": "workspace_id",
    "Finding": "report__workspace_id",
    "RepairPlan": "report__workspace_id",
    "RepairStep": "plan__report__workspace_id",
    "GatewayExchange": "workspace_id",
}

SESSION = "session:"
HOW_TO_NAME = "The conversation: its number or id (conv_7), or its session (session:7 for the name 7)."
# A number has no leading zeros: 007 is only a session.
_NUMBER = re.compile("(?P<prefix>conv_)?(?P<number>0|[1-9][0-9]{0,17})")


@dataclass(frozen=True)
class Scope:
    """The workspace whose rows a caller may see; None for all workspaces.

    Workers and the site administrator see all workspaces. `actor` is the name of the caller in the audit log.
    """

    workspace_id: int | None = None
    actor: str = field(default="system", compare=False)

    def narrow(self, rows: QuerySet[M]) -> QuerySet[M]:
        """Filter a queryset to the rows that this scope may see."""
        if self.workspace_id is None:
            return rows
        path = _PATHS.get(rows.model.__name__, "conversation__workspace_id")
        return rows.filter(**{path: self.workspace_id})

    def filter_rows(self, rows: QuerySet[M], *, conversation_id: int | None, **wanted: Any) -> QuerySet[M]:
        """Filter rows by workspace, conversation and `wanted`; None is no filter.

        Raises NotFound if there is no such conversation.
        """
        if conversation_id is not None:
            wanted["conversation_id"] = self.conversation(conversation_id).pk
        return self.narrow(rows.filter(**{name: value for name, value in wanted.items() if value is not None}))

    def conversation(self, conversation_id: int, *, locked: bool = False) -> Conversation:
        """Return the conversation; NotFound if unknown or of another workspace.

        `locked` locks the row until the transaction ends. Lock it before a change of anything that the row counts.
        """
        if locked:
            held = Conversation.objects.select_for_update(no_key=True)
            return self.find(held, "conversation", conversation_id, conversation_id=conversation_id)
        return self._one(Conversation, "conversation", conversation_id)

    def conversation_of(self, *, message_id: int) -> Conversation:
        """Return a message's conversation; lock its row until the transaction ends."""
        held = Conversation.objects.select_for_update(no_key=True, of=("self",))
        return self.find(held, "message", f"msg_{message_id}", messages__message_id=message_id)

    def message(self, message_id: int) -> Message:
        return self._one(Message, "message", message_id, shown=f"msg_{message_id}")

    def summary(self, summary_id: str) -> Summary:
        return self._one(Summary, "summary", summary_id)

    def file(self, file_id: str) -> LargeFile:
        return self._one(LargeFile, "file", file_id)

    def _one(self, model: type[M], noun: str, key: int | str, *, shown: Any = None) -> M:
        narrow = self.workspace_id is not None
        values = [model._meta.pk.get_prep_value(key), *([self.workspace_id] if narrow else [])]
        found = _by_key(model, narrow).get(values) if is_askable(key) else None
        if found is None:
            raise not_found(noun, key if shown is None else shown)
        return found

    def find(self, rows: QuerySet[M], noun: str, shown: Any, **lookup: Any) -> M:
        """Return the first row that matches the lookup; NotFound if none does."""
        found = self.narrow(rows.filter(**lookup)).first() if all(map(is_askable, lookup.values())) else None
        if found is None:
            raise not_found(noun, shown)
        return found


# All workspaces.
EVERYTHING = Scope()


@dataclass(frozen=True)
class Scoped:
    """A service whose only collaborator is the scope of its caller."""

    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Self:
        return cls(scope=scope)


@cache
def _by_key(model: type[M], narrow: bool) -> OneRow[M]:
    """Compile the query for a row by primary key, in any workspace or in one."""
    # OneRow keeps only the SQL of this example, not its values.
    row = model._default_manager.filter(pk="0")
    return OneRow.from_queryset(Scope(0).narrow(row) if narrow else row)


def not_found(noun: str, shown: Any) -> NotFound:
    """Build the NotFound error, the same for unknown and for forbidden ids."""
    other = next((kind for begin, kind in _KINDS.items() if kind != noun and str(shown).startswith(begin)), None)
    hint = f" That is the id of a {other}: {_SHOWN_BY.get(other, 'lcm_describe shows it')}." if other else ""
    return NotFound(f"There is no {noun} {str(shown)[:80]!r} that you may see.{hint}")


def conversation_named(given: str, *, scope: Scope) -> int:
    """The number of a conversation, given by its number, its id or its session.

    `session:7` is always the session with the name 7. `conv_7` is conversation 7 if the scope has it, and otherwise the
    session with this name. Raises Invalid for a number that is also the session of another conversation, and NotFound
    if the scope has no such conversation, or several with this session.
    """
    session_id = given.removeprefix(SESSION)
    id = _NUMBER.fullmatch(given)
    number = int(id["number"]) if id is not None else None
    found: dict[int, str] = {}
    if is_storable(given):
        rows = scope.narrow(Conversation.objects.filter(Q(pk=number) | Q(session_id=session_id)))
        found = dict(rows.values_list("pk", "session_id"))
    by_session = [each for each, name in found.items() if name == session_id and each != number]
    if id is not None and number in found:
        if by_session and not id["prefix"]:
            raise Invalid(
                f"{given} is the number of a conversation and the session of another one: name conv_{given} or "
                f"{SESSION}{given}."
            )
        return number
    if len(by_session) != 1:
        raise not_found("conversation", given)
    return by_session[0]
