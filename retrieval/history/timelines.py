"""Read the time line of a project: epochs, arcs and sessions, newest first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compaction.history.history_sources import withheld_sessions
from compaction.history.types import HistoryKind
from conversations.content.lossless_values import is_storable
from conversations.errors import Invalid
from conversations.models import Project
from conversations.scope import Scope, not_found
from conversations.sql import load, rows, texts
from conversations.types import Level, ParentLink
from retrieval.history.types import TimelineEntry
from retrieval.search.filters import all_of

SQL = load("retrieval/history/timeline.sql")
_COLUMNS = (
    "id", "depth", "project", "earliest_at", "latest_at", "token_count", "content", "part_of", "conversation_id",
    "session_id", "title", "parent_id", "parent_link", "message_count", "behind", "children", "sessions", "level",
    "confidence", "is_degraded", "erased",
)  # fmt: skip
_KINDS = tuple(HistoryKind)
# SQL conditions of `entries`, on summaries (`s`) and conversations (`c`).
_OF_KIND = "s.depth = %(depth_asked)s"
_OF_CONVERSATIONS = "c.conversation_id = ANY(%(conversation_ids)s::bigint[])"
_OF_IDS = "s.summary_id = ANY(%(ids)s::text[])"
_NONE = "false"


def project_named(name: str, scope: Scope) -> Project:
    """Find a project by name; NotFound, or Invalid if several workspaces have it."""
    found = list(scope.narrow(Project.objects.filter(name=name))[:2]) if is_storable(name) else []
    if len(found) > 1:
        raise Invalid("project: several workspaces have a project of this name; choose a workspace.")
    if not found:
        raise not_found("project", name)
    return found[0]


def entries(
    project: Project | None,
    *,
    scope: Scope,
    kind: HistoryKind | None = None,
    conversation_ids: Sequence[int] = (),
    ids: Sequence[str] = (),
    behind: Sequence[Any] | None = None,
    limit: int,
) -> list[TimelineEntry]:
    """Read entries of the time line of a project, or of the scope, newest first.

    `behind` is the position of the last entry on the previous page. Erased and quarantined entries have no text.
    """
    latest_at, depth, key = behind if behind is not None else (None, None, None)
    project_id = None if project is None else project.project_id
    values = {
        "workspace_id": scope.workspace_id,
        "project_id": project_id,
        "depth_asked": None if kind is None else kind.depth,
        "conversation_ids": list(conversation_ids),
        "ids": texts(ids),
        "latest_at": latest_at,
        "depth": depth,
        "key": key,
        "limit": limit,
    }
    owner = _owner(project_id=project_id, workspace_id=scope.workspace_id)
    of_summaries = {owner.format("s"): True, _OF_KIND: kind is not None, _NONE: conversation_ids, _OF_IDS: ids}
    of_conversations = {
        owner.format("c"): True,
        _NONE: kind not in (None, HistoryKind.SESSION),
        _OF_CONVERSATIONS: conversation_ids,
        _OF_IDS: ids,
    }
    statement = SQL["entries"].format(
        of_summaries=all_of(of_summaries),
        of_conversations=all_of(of_conversations),
        of_parents=owner.format("s"),
        behind="true" if behind is None else SQL["behind"],
    )
    found = rows(statement, values)
    hidden = withheld_sessions(scope.workspace_id)
    return [_entry(dict(zip(_COLUMNS, row, strict=True)), hidden) for row in found]


def session_before(conversation_id: int, *, sessions_ago: int) -> int | None:
    """Find the conversation of the session `sessions_ago` sessions earlier, or None."""
    values = {"conversation_id": conversation_id, "back": sessions_ago - 1}
    return next((int(found) for (found,) in rows(SQL["session_ago"], values)), None)


def _owner(*, project_id: int | None, workspace_id: int | None) -> str:
    """The SQL condition on the owner of rows; `{}` is the alias of the table."""
    if project_id is not None:
        return "{}.project_id = %(project_id)s"
    return "true" if workspace_id is None else "{}.workspace_id = %(workspace_id)s"


def _entry(row: dict[str, Any], hidden: frozenset[str]) -> TimelineEntry:
    kind = _KINDS[row.pop("depth")]
    is_quarantined = row["id"] in hidden
    if is_quarantined or row["erased"]:
        row["content"] = None
    if kind is HistoryKind.SESSION:
        row |= {"children": None, "sessions": None}
    row["level"] = None if row["level"] is None else Level(row["level"])
    row["parent_link"] = None if row["parent_link"] is None else ParentLink(row["parent_link"])
    return TimelineEntry(kind=kind, quarantined=is_quarantined, **row)
