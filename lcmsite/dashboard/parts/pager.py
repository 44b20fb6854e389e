"""Lists that are shown from the newest on, each page behind the last row of the one before.

By a row, not by a number: what comes in while somebody reads moves no page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

Row = TypeVar("Row")


@dataclass(frozen=True)
class Paged(Generic[Row]):
    """The rows of one page; as queries, the ways to the newest and to those behind it, or None if there is none."""

    rows: Sequence[Row]
    newest: str | None
    older: str | None

    @property
    def is_first(self) -> bool:
        return self.newest is None


def paged(
    found: Sequence[Row], *, most: int, key: str, before: object | None, asked: Mapping[str, Any] | None = None
) -> Paged[Row]:
    """A page of so many of what was found, which is one more if there is more behind it.

    `key` is the field by which a row is named, `before` the row this page begins behind, `asked` what stays asked.
    """
    rows = found[:most]
    kept = {name: value for name, value in (asked or {}).items() if value not in (None, "")}
    return Paged(
        rows=rows,
        newest=None if before is None else urlencode(kept),
        older=urlencode({**kept, "before": getattr(rows[-1], key)}) if len(found) > most else None,
    )
