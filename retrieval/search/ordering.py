"""Everything in the order in which it came, the newest first: the places of what is found, and how pages go on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from conversations.sql import bigint
from retrieval.search.filters import Reach
from retrieval.search.searchables import MESSAGES, Table
from retrieval.types import Snippet

Key = tuple[int, int, str]


class Spot(NamedTuple):
    """A row that was found, and where it stands by when it came; `held`: what it holds of what was looked for.

    `snippet` or `row`: the piece of it that shows why, or all that is shown of it, where that was told at once.
    """

    id: int | str
    order_place: int
    rank: int
    snippet: Snippet | None = None
    held: tuple[str, ...] = ()
    row: tuple[Any, ...] | None = None
    worth: float = 0.0

    @property
    def key(self) -> Key:
        """Its place in the order, where no two are alike; the greatest comes first."""
        return (self.order_place, self.rank, str(self.id))


# By `Spot.key`, without making one of each: at one place and of one rank, all ids are texts.
_in_order = attrgetter("order_place", "rank", "id")


def ordered(spots: Iterable[Spot]) -> list[Spot]:
    return sorted(spots, key=_in_order, reverse=True)


def collated(table: Table) -> str:
    """Ids are compared as Python compares them, whatever the database's language."""
    return "" if table is MESSAGES else ' COLLATE "C"'


def high_before(reach: Reach, key: Key | None) -> int:
    """The newest place of a message behind the key: at one place, the message comes first."""
    return reach.high if key is None else min(reach.high, key[0] - 1)


def within(reach: Reach, table: Table, key: Key | None, since: int | None) -> tuple[str, dict[str, Any]]:
    """The condition for what stands behind the key and not before a place that is known to be the last needed."""
    place = reach.place(table)
    conditions: list[str] = []
    values: dict[str, Any] = {}
    if key is not None and table is MESSAGES:
        conditions.append(f"{place} < %(key_place)s")
        values["key_place"] = bigint(key[0])
    elif key is not None:
        own = f'({place}, {table.rank}, {table.id} COLLATE "C")'
        conditions.append(f"{own} < (%(key_place)s, %(key_rank)s, %(key_id)s)")
        values |= {"key_place": bigint(key[0]), "key_rank": bigint(key[1]), "key_id": key[2]}
    if since is not None:
        conditions.append(f"{place} >= %(from_place)s")
        values["from_place"] = since
    return " AND ".join(conditions) or "true", values


def last_place(spots: Sequence[Spot], limit: int) -> int | None:
    """The place before which nothing can be among the first `limit` any more, once there are so many."""
    return ordered(spots)[limit - 1].order_place if len(spots) >= limit else None
