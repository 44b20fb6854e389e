"""Read outlines: summaries without their text."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter

from conversations.sql import load
from conversations.types import Level
from retrieval.types import SummaryOutline

R = TypeVar("R")

# The maximum number of outlines that a description lists.
MOST_IN_MANIFEST = 50

_SQL = load("retrieval/describe.sql")
# The SQL fragments `outline` and `active_then` replace these names in the other statements.
STATEMENTS = {
    name: statement.replace("{outline}", _SQL["outline"]).replace("{active_then}", _SQL["active_then"])
    for name, statement in _SQL.items()
}
# Fields without a column, which are derived from the level.
_OF_THE_LEVEL = ("confidence", "confidence_reason")
_OUTLINE = TypeAdapter(SummaryOutline)
# The columns of `{outline}`, and after them the distance.
_COLUMNS = (
    *(each.name for each in fields(SummaryOutline) if each.name not in ("distance", "superseded_by", *_OF_THE_LEVEL)),
    "superseded_by",
    "distance",
)


def outline(row: Sequence[Any]) -> SummaryOutline:
    """Build an outline from the columns of `{outline}` and a distance."""
    return _OUTLINE.validate_python(_values(_COLUMNS, row))


def records_of(kind: type[R], rows: Iterable[Sequence[Any]]) -> tuple[R, ...]:
    """Build records from rows whose columns are the fields of `kind`, in their order.

    Rows have no column for the confidence of a summary, because it is derived from the level.
    """
    names = [each.name for each in fields(kind) if each.name not in _OF_THE_LEVEL]  # type: ignore[arg-type]
    adapter = _adapter(kind)  # type: ignore[arg-type]
    found: tuple[R, ...] = adapter.validate_python([_values(names, row) for row in rows])
    return found


def _values(names: Sequence[str], row: Sequence[Any]) -> dict[str, Any]:
    values = dict(zip(names, row, strict=True))
    if "level" in values:
        level = None if values["level"] is None else Level(values["level"])
        values |= {name: getattr(level, name, None) for name in _OF_THE_LEVEL}
    return values


@cache
def _adapter(kind: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(tuple[kind, ...])  # type: ignore[valid-type]


def in_order(outlines: Iterable[SummaryOutline]) -> list[SummaryOutline]:
    """Sort by first seq, then deepest first; keep each summary once, the nearest."""
    nearest: dict[str, SummaryOutline] = {}
    for each in sorted(outlines, key=lambda each: abs(each.distance)):
        nearest.setdefault(each.summary_id, each)
    return sorted(nearest.values(), key=lambda each: (each.first_seq, -each.depth, each.summary_id))


def way_up(outlines: Iterable[SummaryOutline]) -> list[SummaryOutline]:
    """Sort the summaries that contain an item, nearest first."""
    return sorted(in_order(outlines), key=lambda each: -each.distance)
