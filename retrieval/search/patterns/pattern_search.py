"""Search by a regular expression, newest first.

Only the matches of one page are in memory, even if the history is long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import DataError

from conversations.errors import Invalid
from conversations.sql import bigint, bound, load, rows_as_planned
from retrieval.search.filters import MESSAGES, Filters, Searchable, key_values
from retrieval.search.patterns.pattern_translation import Pattern, pattern_error
from retrieval.search.prepare import Deadline
from retrieval.search.request import Found, FoundRow, Key, Position
from retrieval.search.snippets import WIDTH, around

_SQL = load("retrieval/search/patterns.sql")
# This many of the newest messages are searched first, without the trigram index. For a frequent pattern this fills the
# page, while the index would first collect all matches.
NEAR = 1000


@dataclass(frozen=True)
class PatternSearch:
    """Finds texts that match, newest first; use it within `prepare.bounded`.

    With `by_trigrams`, the trigram index finds the messages that can match. Each statement is planned for its values,
    because the best plan depends on the expression.
    """

    filters: Filters
    limit: int
    deadline: Deadline
    by_trigrams: bool = False

    def first(self, pattern: Pattern, key: Key | None) -> Found:
        """Find the first matches after the key; raises Invalid for a bad pattern."""
        found: list[FoundRow] = []
        for table in self.filters.tables:
            if table is MESSAGES:
                found = self._messages(pattern, key)
                continue
            self.deadline.impose()
            # If the page is full, only rows newer than its last row can still be on it.
            since = found[-1].order_place if len(found) >= self.limit else -1
            within = f"{self.filters.place(table)} >= %(from_place)s AND {self.filters.behind(table, key)}"
            values = {"from_place": bigint(since), **key_values(key)}
            found += self._matching("newest_of_table", table, pattern, within, values)
            found = sorted(found, key=lambda each: each.key, reverse=True)[: self.limit]
        return Found(found, lambda place: Position(found[place].key))

    def _messages(self, pattern: Pattern, key: Key | None) -> list[FoundRow]:
        """Find matches among the newest messages; if too few, also among all others."""
        place, low, high = self.filters.place(MESSAGES), self.filters.low, self.filters.high_before(key)
        within, near = f"{place} > %(after)s AND {place} <= %(upto)s", max(low, high - NEAR)
        by_trigrams = self.by_trigrams and pattern.literal is not None
        found: list[FoundRow] = []
        for name, after, upto in (
            ("newest_of_table", near, high),
            ("newest_by_trigrams" if by_trigrams else "newest_of_table", low, near),
        ):
            if after < upto and len(found) < self.limit:
                found += self._matching(name, MESSAGES, pattern, within, {"after": after, "upto": upto})
        return found[: self.limit]

    def _matching(
        self, name: str, table: Searchable, pattern: Pattern, within: str, values: Mapping[str, Any]
    ) -> list[FoundRow]:
        place = self.filters.place(table)
        newest = _SQL[name].format(
            id=table.id,
            place=place,
            rank=table.rank,
            text=table.text,
            table=table.name,
            where=self.filters.where(table, by_words=False),
            within=within,
            has_text=table.has_text,
            matches=_matches(pattern, table.text),
            # Ids are compared as in Python, independent of the collation of the database.
            order=f"{place} DESC" + ("" if table is MESSAGES else f', rank DESC, {table.id} COLLATE "C" DESC'),
        )
        statement = _SQL["matching_texts"].format(width=WIDTH, newest=newest)
        values = {**self.filters.values, **values, **vars(pattern), "limit": self.limit}
        try:
            found = rows_as_planned(bound(statement, values))
        except DataError as error:
            raise invalid_pattern(error) from error
        return [
            FoundRow(id, place, rank, around(content, begin - 1, end - 1, offset=offset))
            for id, place, rank, begin, end, content, offset in found
        ]


def _matches(pattern: Pattern, text: str) -> str:
    # The planner estimates that a CASE is true for half of the rows, so it reads from the newest row on and stops soon.
    if pattern.literal is None:
        return f"CASE WHEN {text} ~ %(expression)s THEN true ELSE false END"
    # A literal is cheaper to check. The CASE checks it first; two conditions might be checked in either order.
    return f"CASE WHEN strpos({text}, %(literal)s) > 0 THEN {text} ~ %(expression)s ELSE false END"


def invalid_pattern(error: DataError) -> Invalid:
    """Build the error for an expression that PostgreSQL rejects."""
    reason = str(error).splitlines()[0].removeprefix("invalid regular expression: ")
    return pattern_error(f"This is not a valid regular expression: {reason}.")
