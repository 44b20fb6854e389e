"""The messages of a format, and the changes that its API made necessary. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, Self

from conversations.content.lossless_values import is_storable, storable
from conversations.types import NewPart, Role


class MessageFormat(StrEnum):
    """Whose messages an assembled context can be given as."""

    NEUTRAL = "neutral"
    OPENAI = "openai"
    OPENAI_RESPONSES = "openai_responses"
    ANTHROPIC = "anthropic"


class RepairKind(StrEnum):
    """What had to be done to messages so that an API takes them, with a sentence."""

    what: str

    def __new__(cls, value: str, what: str) -> Self:
        kind = str.__new__(cls, value)
        kind._value_, kind.what = value, what
        return kind

    ORPHAN_RESULT = "orphan_result", "The result of a call that is not shown, or unknown, became a text of the user."
    MISSING_RESULT = "missing_result", "A call without a result got one that says so."
    MOVED_RESULT = "moved_result", "A result was moved to its call."
    RENAMED_CALL = "renamed_call", "A call and its result got another id: theirs was taken, or invalid for the API."
    RENAMED_TOOL = "renamed_tool", "A tool got another name: its own is invalid for the API."
    WRAPPED_INPUT = "wrapped_input", "The input of a call was not an object, and was put into one."
    MERGED_NEIGHBOURS = "merged_neighbours", "Consecutive messages of one role were merged."
    MOVED_SYSTEM = "moved_system", "A system message was moved to the others at the top."
    DROPPED_EMPTY = "dropped_empty", "An empty message, or one with only thoughts, was left out."
    DROPPED_NAME = "dropped_name", "The author's name was left out: the API has no field for it."
    ADDED_START = "added_start", "A text of the user was put first: the API demands that the user begins."
    ATTACHMENT_AS_TEXT = "attachment_as_text", "An attachment that the API does not accept here is named in the text."
    REPLACED_CHARACTERS = (
        "replaced_characters",
        "Characters that UTF-8 cannot encode, such as lone surrogates, were replaced.",
    )
    STRIPPED_END = "stripped_end", "White space at the very end was removed."


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
            Repair(kind=kind, item_ids=tuple(self._items[kind]), what=kind.what)
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
