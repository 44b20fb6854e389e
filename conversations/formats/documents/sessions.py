"""The sessions of a document: what every reader of a whole file returns. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import PurePath
from typing import Any

from conversations.content.json_values import noun_of
from conversations.types import NewMessage


@dataclass(frozen=True)
class SessionMessage:
    """A message, the id that its host gave it, and the one that it follows.

    Without an id, a second import recognizes it by its place and its row.
    """

    message: NewMessage
    row: Any
    id: str = ""
    # The id of its predecessor, "" for none; None if it follows the message before it.
    after: str | None = None


@dataclass(frozen=True)
class HostSession:
    """A session as its host has it, with its messages in the order of storing."""

    session_id: str
    messages: tuple[SessionMessage, ...]
    title: str = ""
    project: str = ""
    parent_session_id: str = ""
    # The id of the message where the session goes on; empty for the last one.
    head: str = ""
    # What was left out, by kind.
    passed_over: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Node:
    """A message of a tree, or None for a node without one."""

    id: str
    parent_id: str
    message: NewMessage | None
    row: Any = None


def in_branches(nodes: Iterable[Node], head: str) -> tuple[tuple[SessionMessage, ...], str]:
    """Return the messages of a tree, branch by branch, and the message at its head.

    A node without a message is passed over: what follows it follows the message before it. A tree without branches is a
    plain list.
    """
    by_id = {node.id: node for node in nodes}
    children: dict[str, list[Node]] = {}
    for node in by_id.values():
        children.setdefault(node.parent_id if node.parent_id in by_id else "", []).append(node)
    # Of each node, the message that what comes below it follows.
    last: dict[str, str] = {"": ""}
    found: list[SessionMessage] = []
    left = children.get("", [])[::-1]
    while left:
        node = left.pop()
        after = last[node.parent_id if node.parent_id in by_id else ""]
        last[node.id] = after if node.message is None else node.id
        if node.message is not None:
            found.append(SessionMessage(node.message, node.row, node.id, after))
        left += children.get(node.id, [])[::-1]
    if len({each.after for each in found}) == len(found):
        return tuple(SessionMessage(each.message, each.row, each.id) for each in found), ""
    return tuple(found), last.get(head, "")


def from_milliseconds(value: Any) -> datetime | None:
    """The time of so many milliseconds since 1970; None for anything else."""
    return from_seconds(value / 1000) if type(value) in (int, float) else None


def from_seconds(value: Any) -> datetime | None:
    """The time of so many seconds since 1970; None for anything else."""
    if type(value) not in (int, float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{value} is not a time.") from None


def object_of(value: Any, name: str) -> Mapping[str, Any]:
    """The value as an object; ValueError, with its name, for anything else."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be an object, not {noun_of(value)}.")
    return value


def text_of(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def without(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """The row without these keys, which the columns of the store have."""
    return {key: value for key, value in row.items() if key not in keys}


def name_of(path: PurePath) -> str:
    """The name of a file without the suffixes that say how it is written."""
    while path.suffix in (".gz", ".zst", ".json", ".jsonl", ".ndjson", ".traj"):
        path = path.with_suffix("")
    return path.name
