"""The records that readers of whole files return, and their helpers. Pure."""

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
    """A message with its row, the host's id for it, and its predecessor.

    A later import recognizes a message without an id by its position and its row.
    """

    message: NewMessage
    row: Any
    id: str = ""
    # The id of the predecessor, or "" for none. None means that the message follows the one before it in the list.
    after: str | None = None


@dataclass(frozen=True)
class HostSession:
    """A session of an agent program (host); its messages are in the order to store."""

    session_id: str
    messages: tuple[SessionMessage, ...]
    title: str = ""
    project: str = ""
    parent_session_id: str = ""
    # The id of the message at the session's head; empty if that is the last message.
    head: str = ""
    # The number of rows that were left out, by kind.
    passed_over: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Node:
    """A node of a tree of messages; `message` is None if it has none."""

    id: str
    parent_id: str
    message: NewMessage | None
    row: Any = None


def in_branches(nodes: Iterable[Node], head: str) -> tuple[tuple[SessionMessage, ...], str]:
    """Return the messages of a tree, branch by branch, and the id of its head.

    The children of a node without a message follow the nearest ancestor that has a message. In a tree without branches,
    messages have no explicit predecessors, and the head is "". ValueError if two nodes have one id, or if a node comes
    before itself.
    """
    by_id: dict[str, Node] = {}
    for node in nodes:
        if by_id.setdefault(node.id, node) is not node:
            raise ValueError(f"Two messages have the id {node.id}.")
    children: dict[str, list[Node]] = {}
    for node in by_id.values():
        children.setdefault(node.parent_id if node.parent_id in by_id else "", []).append(node)
    # For each node, the id of the message that its children follow.
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
    if unreached := by_id.keys() - last.keys():
        raise ValueError(f"The message {min(unreached)} comes before itself.")
    if len({each.after for each in found}) == len(found):
        return tuple(SessionMessage(each.message, each.row, each.id) for each in found), ""
    return tuple(found), last.get(head, "")


def from_milliseconds(value: Any) -> datetime | None:
    """Convert milliseconds since 1970 to a time; None if it is not a number."""
    return from_seconds(value / 1000) if type(value) in (int, float) else None


def from_seconds(value: Any) -> datetime | None:
    """Convert seconds since 1970 to a time; None if it is not a number.

    Raises ValueError for a number out of range.
    """
    if type(value) not in (int, float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        raise ValueError(f"{value} is not a time.") from None


def object_of(value: Any, name: str) -> Mapping[str, Any]:
    """Return the value if it is an object; ValueError, with `name`, otherwise."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be an object, not {noun_of(value)}.")
    return value


def text_of(value: Any) -> str:
    """Return the value if it is a text, else an empty text."""
    return value if isinstance(value, str) else ""


def without(row: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """Return the row without these keys."""
    return {key: value for key, value in row.items() if key not in keys}


def name_of(path: PurePath) -> str:
    """Return the name of a file without suffixes of formats and compression."""
    while path.suffix in (".gz", ".zst", ".zip", ".json", ".jsonl", ".ndjson", ".traj"):
        path = path.with_suffix("")
    return path.name
