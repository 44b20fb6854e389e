"""Cut a message that is larger than a page into slices; no I/O.

The content of a message usually consists of the texts of its parts. So a value of a part that the content contains is
returned as a *span*, which is a range of the content. If a message does not fit a page, slices of its content come
first, and then slices of its parts, which are JSON, one part per line.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from conversations.content.lossless_values import JSON_COLUMNS
from conversations.fast.records import record
from conversations.types import PART_COLUMNS, NewPart, PartRecord, PartType

# A shorter text would not become smaller as a span.
SHORTEST_SPAN = 24
_COLUMNS = frozenset(PART_COLUMNS) - {"part_type"}
_CHARACTERS_A_TOKEN = 4
# Values parsed from JSON have no circular references, so there is no check for them.
_compact = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_readable = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


@dataclass(frozen=True)
class PartView:
    """A part of a message; `spans` locates its other texts in the message's content."""

    ordinal: int
    part_type: PartType
    values: Mapping[str, Any] = field(default_factory=dict)
    spans: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def views(parts: Iterable[PartRecord], content: str) -> tuple[PartView, ...]:
    """Build views of the parts, with spans for values that this content contains."""
    return tuple([_view(part, content) for part in parts])


def _view(part: PartRecord, content: str) -> PartView:
    values: dict[str, Any] = {}
    spans: dict[str, tuple[int, int]] = {}
    for name, value in vars(part).items():
        if value is None or name not in _COLUMNS:
            continue
        if name in JSON_COLUMNS:
            text = _readable(value)
        elif isinstance(value, str):
            text = value
        else:
            values[name] = _plain(value)
            continue
        begin = content.find(text) if len(text) >= SHORTEST_SPAN else -1
        if begin >= 0:
            spans[name] = (begin, begin + len(text))
        else:
            values[name] = value if text is value else _plain(value)
    return record(PartView, {"ordinal": part.ordinal, "part_type": part.part_type, "values": values, "spans": spans})


def _plain(value: Any) -> Any:
    """Convert a value to a type that JSON has."""
    if isinstance(value, Decimal):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


def parts_of(shown: Iterable[PartView], content: str) -> list[NewPart]:
    """Restore the parts that `views` was given with this content."""
    return [
        NewPart(
            part.part_type, **part.values, **{name: _spanned(name, content, part.spans[name]) for name in part.spans}
        )
        for part in shown
    ]


def _spanned(name: str, content: str, span: tuple[int, int]) -> Any:
    text = content[slice(*span)]
    return json.loads(text) if name in JSON_COLUMNS else text


def as_json(parts: Sequence[PartView]) -> str:
    """Serialize parts in ASCII, one per line; a new part only adds a line at the end."""
    return "".join(f"{_compact([part.ordinal, part.part_type, part.values, part.spans])}\n" for part in parts)


def cost_of(parts: Sequence[PartView]) -> int:
    """The estimated number of tokens of `as_json(parts)`."""
    return -(-len(as_json(parts)) // _CHARACTERS_A_TOKEN)


def prefix_within(text: str, budget: int, count: Callable[[str], int]) -> int:
    """The number of first characters with at most `budget` tokens; at least one."""
    length = min(len(text), max(1, budget) * _CHARACTERS_A_TOKEN)
    while length > 1:
        tokens = count(text[:length])
        if tokens <= budget:
            break
        length = max(1, min(length - 1, int(length * budget / tokens * 0.95)))
    return length


@dataclass(frozen=True)
class Slice:
    """A slice of a message: a range of its content or, after that, of its parts."""

    content: str
    content_offset: int
    parts_json: str
    parts_offset: int
    tokens: int
    is_last: bool


def slice_of(
    content: str,
    parts_json: str,
    *,
    content_offset: int,
    parts_offset: int,
    budget: int,
    count: Callable[[str], int],
) -> Slice:
    """Cut the next slice of at most `budget` tokens: content first, then parts."""
    if content_offset < len(content):
        rest = content[content_offset:]
        piece = rest[: prefix_within(rest, budget, count)]
        given, part_piece = content_offset + len(piece), ""
    else:
        rest = parts_json[parts_offset:]
        piece, given = "", content_offset
        part_piece = rest[: prefix_within(rest, budget, count)] if rest else ""
    return Slice(
        content=piece,
        content_offset=content_offset,
        parts_json=part_piece,
        parts_offset=parts_offset,
        tokens=count(piece or part_piece),
        # The offsets may be beyond the end of a text that was erased or quarantined after the previous slice.
        is_last=given >= len(content) and parts_offset + len(part_piece) >= len(parts_json),
    )
