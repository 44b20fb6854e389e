"""Pages of a list that starts with the newest row.

A page starts after a row, not at a number, so that new rows do not shift the pages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

Row = TypeVar("Row")


@dataclass(frozen=True)
class Paged(Generic[Row]):
    """The rows of a page, and the queries of the links to the newest and the older rows."""

    rows: Sequence[Row]
    newest: str | None
    older: str | None

    @property
    def is_first(self) -> bool:
        return self.newest is None


def paged(
    found: Sequence[Row], *, most: int, key: str, before: object | None, filters: Mapping[str, Any] | None = None
) -> Paged[Row]:
    """A page of at most `most` rows; `found` holds one more if there are older rows.

    `key` is the field that names a row, `before` the row before this page, `filters` are kept in the links.
    """
    rows = found[:most]
    kept = {name: value for name, value in (filters or {}).items() if value not in (None, "")}
    return Paged(
        rows=rows,
        newest=None if before is None else urlencode(kept),
        older=urlencode({**kept, "before": getattr(rows[-1], key)}) if len(found) > most else None,
    )
