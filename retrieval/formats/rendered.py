"""The messages of a format, and what was changed for it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conversations.content.lossless_values import is_storable, storable
from retrieval.assembly.types import Repair, RepairKind

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


class Repairs:
    """What was done so far, by kind."""

    def __init__(self) -> None:
        self._items: dict[RepairKind, dict[str, None]] = {}

    def note(self, kind: RepairKind, item_ids: Iterable[str]) -> None:
        self._items.setdefault(kind, {}).update(dict.fromkeys(item_ids))

    def sendable(self, text: str, item_id: str) -> str:
        """The text as UTF-8 can say it."""
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


def content_of(pieces: Sequence[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """What OpenAI's APIs take for a content: a text alone as it is, several pieces as a list of them."""
    if len(pieces) <= 1 and all("text" in piece for piece in pieces):
        return str(pieces[0]["text"]) if pieces else ""
    return list(pieces)
