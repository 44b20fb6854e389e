"""The messages of a format, and the changes that its API made necessary. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from conversations.content.lossless_values import is_storable, storable
from conversations.types import NewPart, Role


class MessageFormat(StrEnum):
    """Whose messages an assembled context can be given as."""

    NEUTRAL = "neutral"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai_responses"
    ANTHROPIC = "anthropic"


class RepairKind(StrEnum):
    """What had to be done to messages so that an API takes them."""

    ORPHAN_RESULT = "orphan_result"
    MISSING_RESULT = "missing_result"
    MOVED_RESULT = "moved_result"
    RENAMED_CALL = "renamed_call"
    RENAMED_TOOL = "renamed_tool"
    WRAPPED_INPUT = "wrapped_input"
    MERGED_NEIGHBOURS = "merged_neighbours"
    MOVED_SYSTEM = "moved_system"
    DROPPED_EMPTY = "dropped_empty"
    DROPPED_NAME = "dropped_name"
    ADDED_START = "added_start"
    ATTACHMENT_AS_TEXT = "attachment_as_text"
    REPLACED_CHARACTERS = "replaced_characters"
    STRIPPED_END = "stripped_end"


_WHAT = {
    RepairKind.ORPHAN_RESULT: "The result of a call that is not shown, or not known, stands as a user's text.",
    RepairKind.MISSING_RESULT: "A call without a result was given one that says so.",
    RepairKind.MOVED_RESULT: "A result was moved to its call.",
    RepairKind.RENAMED_CALL: "A call and its result have another id: their own was taken, or not as the API has them.",
    RepairKind.RENAMED_TOOL: "The name of a tool is another: it was not as the API has them.",
    RepairKind.WRAPPED_INPUT: "The input of a call, which was no object, stands in one.",
    RepairKind.MERGED_NEIGHBOURS: "Neighbours of one role are one message.",
    RepairKind.MOVED_SYSTEM: "A system message from the middle stands with the others at the top.",
    RepairKind.DROPPED_EMPTY: "What is empty, or was only thought, was left out.",
    RepairKind.DROPPED_NAME: "The name of whoever said it was left out: the API has no place for it.",
    RepairKind.ADDED_START: "A user's text was put first, for the API has the user begin.",
    RepairKind.ATTACHMENT_AS_TEXT: "An attachment that the API does not take here is named in the text.",
    RepairKind.REPLACED_CHARACTERS: "Characters that cannot be sent, such as half a surrogate pair, were replaced.",
    RepairKind.STRIPPED_END: "White space at the very end was left out.",
}


class Item(Protocol):
    """A message or summary of an assembled context."""

    @property
    def id(self) -> str: ...
    @property
    def role(self) -> Role: ...
    @property
    def text(self) -> str: ...
    @property
    def parts(self) -> Sequence[NewPart]: ...
    @property
    def author(self) -> str | None: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def created_at(self) -> datetime: ...
    @property
    def first_seq(self) -> int: ...
    @property
    def last_seq(self) -> int: ...


@dataclass(frozen=True)
class Repair:
    """One kind of change, and the rendered items that have it; the store has none."""

    kind: RepairKind
    item_ids: tuple[str, ...]
    what: str


class Repairs:
    """Collects the items of each kind of repair."""

    def __init__(self) -> None:
        self._items: dict[RepairKind, dict[str, None]] = {}

    def note(self, kind: RepairKind, item_ids: Iterable[str]) -> None:
        self._items.setdefault(kind, {}).update(dict.fromkeys(item_ids))

    def sendable(self, text: str, item_id: str) -> str:
        """Replace what UTF-8 cannot encode."""
        if is_storable(text):
            return text
        self.note(RepairKind.REPLACED_CHARACTERS, [item_id])
        return storable(text)

    def as_records(self) -> tuple[Repair, ...]:
        return tuple(
            Repair(kind=kind, item_ids=tuple(self._items[kind]), what=_WHAT[kind])
            for kind in RepairKind
            if kind in self._items
        )


@dataclass(frozen=True)
class Rendered:
    """Messages in an API's own shape; `sources` names the items of each."""

    messages: tuple[Mapping[str, Any], ...]
    sources: tuple[tuple[str, ...], ...]
    system: tuple[Mapping[str, Any], ...] = ()
    repairs: tuple[Repair, ...] = ()
