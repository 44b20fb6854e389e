"""Pages of lists, bounded by bytes, each after the last row of the one before.

The database says how many rows fit before any of them is read: a row can be of any size.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, TypeVar

from django.db.models import Q

from conversations.sql import load, rows

T = TypeVar("T")

# A page has more only where its first row alone is larger.
MOST_PAGE_BYTES = 8 * 1024**2
_FIT = load("conversations/pages.sql")


class Page(list[T]):
    """The rows of one page; with `more`, the list continues after the last."""

    def __init__(self, found: Iterable[T] = (), *, more: bool = False) -> None:
        super().__init__(found)
        self.more = more


def fitting(name: str, **values: Any) -> tuple[int, bool]:
    """How many rows of a statement fit a page, and whether more follow."""
    [(there, fit)] = rows(_FIT[name], {**values, "most_bytes": MOST_PAGE_BYTES})
    return max(1, fit), fit < there and there > 1


def fitting_conversations(*, newest_first: bool, **values: Any) -> tuple[list[int], int]:
    """The ids of the conversations of a page, and how many its limit allows."""
    order = {"behind": "<", "direction": "DESC"} if newest_first else {"behind": ">", "direction": "ASC"}
    statement = _FIT["conversations_that_fit"].format(**order)
    [(ids, there)] = rows(statement, {**values, "most_bytes": MOST_PAGE_BYTES})
    return ids, there


def behind(*, field: str, moment: datetime, key: str | int) -> Q:
    """The rows after this one, in descending order of the field and the key.

    The first condition is on the field alone, so that its index is used.
    """
    return Q(**{f"{field}__lte": moment}) & (Q(**{f"{field}__lt": moment}) | Q(pk__lt=key))
