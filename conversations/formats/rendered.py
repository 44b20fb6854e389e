"""A rendered context: its messages, and the repairs that the API requires. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from conversations.content.lossless_values import is_storable, storable
from conversations.types import NewPart, Role


class MessageFormat(StrEnum):
    """The message formats that an assembled context can be rendered in."""

    NEUTRAL = "neutral"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai_responses"
    ANTHROPIC = "anthropic"


class RepairKind(StrEnum):
    """Changes that messages need so that an API accepts them."""

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
    SERVER_CALL = "server_call"


_WHAT = {
    RepairKind.ORPHAN_RESULT: "The result of a call that is not shown, or unknown, became a text of the user.",
    RepairKind.MISSING_RESULT: "A call without a result got one that says so.",
    RepairKind.MOVED_RESULT: "A result was moved to its call.",
    RepairKind.RENAMED_CALL: "A call and its result got another id: theirs was taken, or invalid for the API.",
    RepairKind.RENAMED_TOOL: "A tool got another name: its own is invalid for the API.",
    RepairKind.WRAPPED_INPUT: "The input of a call was not an object, and was put into one.",
    RepairKind.MERGED_NEIGHBOURS: "Consecutive messages of one role were merged.",
    RepairKind.MOVED_SYSTEM: "A system message was moved to the others at the top.",
    RepairKind.DROPPED_EMPTY: "An empty message, or one with only thoughts or ignored texts, was left out.",
    RepairKind.DROPPED_NAME: "The author's name was left out: the API has no field for it.",
    RepairKind.ADDED_START: "A text of the user was put first: the API demands that the user begins.",
    RepairKind.ATTACHMENT_AS_TEXT: "An attachment that the API does not accept here is named in the text.",
    RepairKind.REPLACED_CHARACTERS: "NUL characters and lone surrogates were replaced by U+FFFD.",
    RepairKind.STRIPPED_END: "White space at the very end was removed.",
    RepairKind.SERVER_CALL: "A call that the vendor ran itself, such as a web search, became an ordinary call.",
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
    """A kind of change, and the rendered items that it changed, not the stored ones."""

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
        """Replace NUL and lone surrogates, and note the repair."""
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
    """Messages in an API's format; `sources` has the item ids of each message."""

    messages: tuple[Mapping[str, Any], ...]
    sources: tuple[tuple[str, ...], ...]
    system: tuple[Mapping[str, Any], ...] = ()
    repairs: tuple[Repair, ...] = ()
