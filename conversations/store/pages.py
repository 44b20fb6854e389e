"""Limit pages of lists by bytes, and continue each after its last row.

The database computes how many rows fit before any of them is read, as a row can have any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from django.db.models import Model, Q, QuerySet

from conversations.sql import array, load, rows
from conversations.types import ConversationRecord

T = TypeVar("T")
M = TypeVar("M", bound=Model)

# Maximum of the characters of a first prompt in a list, and how many messages are searched for it.
LONGEST_PROMPT, FIRST_MESSAGES = 80, 50

# Maximum number of bytes of a page, unless its first row alone is larger.
MOST_PAGE_BYTES = 8 * 1024**2
_FIT = load("conversations/pages.sql")


class Page(list[T]):
    """The rows of one page; with `more`, the list continues after the last."""

    def __init__(self, found: Iterable[T] = (), *, more: bool = False) -> None:
        super().__init__(found)
        self.more = more


def fitting_messages(**values: Any) -> tuple[int, bool]:
    """Return how many messages fit into a page, and whether more follow."""
    [(there, fit)] = rows(_FIT["messages_that_fit"], {**values, "most_bytes": MOST_PAGE_BYTES})
    return max(1, fit), fit < there and there > 1


def fitting_conversations(*, newest_first: bool, **values: Any) -> tuple[list[int], int]:
    """Return a page's conversation ids, and how many there are up to its limit."""
    order = {"behind": "<", "direction": "DESC"} if newest_first else {"behind": ">", "direction": "ASC"}
    statement = _FIT["conversations_that_fit"].format(**order)
    [(ids, there)] = rows(statement, {**values, "most_bytes": MOST_PAGE_BYTES})
    return ids, there


def with_first_prompts(records: Iterable[ConversationRecord]) -> list[ConversationRecord]:
    """Add the first line of their first prompts to conversations without a title.

    Texts in the cold tier are not read, and a conversation with quarantined items gets none.
    """
    listed = list(records)
    untitled = array(each.conversation_id for each in listed if each.title is None)
    found = dict(rows(_FIT["first_prompts"], [2 * LONGEST_PROMPT, FIRST_MESSAGES, untitled]))
    lines = {id: prompt.splitlines()[0].rstrip() for id, prompt in found.items()}
    shown = {
        id: line if len(line) <= LONGEST_PROMPT else f"{line[: LONGEST_PROMPT - 1]}…" for id, line in lines.items()
    }
    return [replace(each, first_prompt=shown.get(each.conversation_id)) for each in listed]


def newest_first(
    rows: QuerySet[M], before: str | None, find: Callable[[str], Any], *, field: str = "created_at"
) -> QuerySet[M]:
    """Order rows by descending field and key, after the row with the id `before`."""
    key = rows.model._meta.pk.attname
    rows = rows.order_by(f"-{field}", f"-{key}")
    if before is None:
        return rows
    last = find(before)
    moment = getattr(last, field)
    # The first condition is on the field alone, so that its index is used.
    return rows.filter(Q(**{f"{field}__lte": moment}) & (Q(**{f"{field}__lt": moment}) | Q(pk__lt=getattr(last, key))))
