"""Order found rows by when they came, the newest first; conditions for the next page."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, NamedTuple

from conversations.sql import bigint
from retrieval.search.filters import Filters
from retrieval.search.searchables import MESSAGES, Searchable
from retrieval.types import Snippet

Key = tuple[int, int, str]
# Behind every place that there is.
NEWEST = 2**63 - 1


class FoundRow(NamedTuple):
    """A message, summary or file that matches, and its place by when it came. `snippet`: if known already."""

    id: int | str
    order_place: int
    rank: int
    snippet: Snippet | None = None
    worth: float = 0.0

    @property
    def key(self) -> Key:
        """Its place in the order, where no two are alike; the greatest comes first."""
        return (self.order_place, self.rank, str(self.id))


# By `FoundRow.key`, without making one of each: at one place and of one rank, all ids are texts.
_in_order = attrgetter("order_place", "rank", "id")


def newest_first(found: Iterable[FoundRow]) -> list[FoundRow]:
    return sorted(found, key=_in_order, reverse=True)


def high_before(filters: Filters, key: Key | None) -> int:
    """The newest place of a message behind the key: at one place, the message comes first."""
    return filters.high if key is None else min(filters.high, key[0] - 1)


def behind(filters: Filters, table: Searchable, key: Key | None) -> str:
    """The condition for rows of a table other than messages that stand behind the key, if there is one."""
    if key is None:
        return "true"
    own = f'({filters.place(table)}, {table.rank}, {table.id} COLLATE "C")'
    return f"({own} < (%(key_place)s, %(key_rank)s, %(key_id)s)) IS TRUE"


def key_values(key: Key | None) -> dict[str, Any]:
    """The parameters of `behind`."""
    if key is None:
        return {}
    return {"key_place": bigint(key[0]), "key_rank": bigint(key[1]), "key_id": key[2]}


def collation(table: Searchable) -> str:
    """Ids are compared as Python compares them, whatever the database's language."""
    return "" if table is MESSAGES else ' COLLATE "C"'
