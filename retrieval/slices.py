"""Messages too long for a page: cut into slices that put together give every byte back. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from typing import Any

from conversations.types import PartRecord, PartType
from retrieval.types import ExpandedItem, ItemKind

# A token is hardly ever longer than this many characters, so that a longer piece need not be counted to be too long.
MOST_CHARACTERS_PER_TOKEN = 16


def parts_as_json(parts: Sequence[PartRecord]) -> str:
    """The parts, one a line, as JSON that holds every character in ASCII."""
    return "\n".join(
        json.dumps({name: value for name, value in asdict(part).items() if value is not None}, default=str)
        for part in parts
    )


def parts_from_json(text: str) -> tuple[PartRecord, ...]:
    return tuple(_part(json.loads(line)) for line in text.split("\n") if line)


def _part(values: dict[str, Any]) -> PartRecord:
    values["part_type"] = PartType(values["part_type"])
    if "step_cost" in values:
        values["step_cost"] = Decimal(values["step_cost"])
    if "patch_files" in values:
        values["patch_files"] = tuple(values["patch_files"])
    return PartRecord(**values)


def prefix_of(text: str, start: int, *, room: int, count_tokens: Callable[[str], int]) -> str:
    """The longest piece from `start` that costs no more than `room`, found by halving; at least a character."""
    rest = text[start : start + max(1, room) * MOST_CHARACTERS_PER_TOKEN]
    if count_tokens(rest) <= room:
        return rest
    fits, too_long = 1, len(rest)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count_tokens(rest[:middle]) <= room:
            fits = middle
        else:
            too_long = middle
    return rest[:fits]


def joined(items: Iterable[ExpandedItem]) -> list[ExpandedItem]:
    """The items of consecutive pages with every sliced message made whole again, its parts as they are."""
    whole: list[ExpandedItem] = []
    content: list[str] = []
    parts: list[str] = []
    for item in items:
        if item.kind is not ItemKind.MESSAGE or (item.complete and not content and not parts):
            whole.append(item)
            continue
        content.append(item.content)
        parts.append(item.parts_json)
        if item.complete:
            whole.append(
                replace(
                    item,
                    content="".join(content),
                    content_offset=0,
                    parts=parts_from_json("".join(parts)),
                    parts_json="",
                    parts_offset=0,
                )
            )
            content, parts = [], []
    return whole
