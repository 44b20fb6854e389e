"""Finds what a regular expression matches, newest first, in batches that grow: near things are found at once, and a
search through everything holds no more than its matches in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.db import DataError, connection

from conversations.errors import Invalid
from retrieval.limits import Deadline
from retrieval.search.patterns import Pattern, refused
from retrieval.search.places import Key, Spot, batches, collated, high_before, last_place, ordered, within
from retrieval.search.reach import Reach
from retrieval.search.snippets import WIDTH, around
from retrieval.search.tables import MESSAGES, Table

# What is frequent is found among the newest, where the index would first collect everything.
_BATCHES_BEFORE_THE_INDEX = 1

# A match's place is worked out only for what is given back; the offset keeps the planner from doing it before.
_MATCHING = """
    SELECT id, order_place, rank, from_place, to_place,
           substr(content, greatest(1, from_place - {width}), {width} * 3), greatest(0, from_place - {width} - 1)
    FROM (
        SELECT id, order_place, rank, content, regexp_instr(content, %(pattern)s) AS from_place,
               regexp_instr(content, %(pattern)s, 1, 1, 1) AS to_place
        FROM ({newest}) AS newest
        OFFSET 0
    ) AS found
    ORDER BY order_place DESC, rank DESC, id{collated} DESC
"""
_NEWEST = """
    SELECT {id} AS id, {place} AS order_place, {rank} AS rank, {text} AS content
    FROM {table} WHERE {where} AND {within} AND {has_text} AND {matches}
    ORDER BY {order} LIMIT %(limit)s
"""
# For the order alone, the planner would walk through all rows and not look into the index of trigrams.
_NEWEST_BY_TRIGRAMS = """
    WITH matching AS MATERIALIZED (
        SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
        FROM {table} WHERE {where} AND {within} AND {has_text} AND {text} ~ %(pattern)s
    ), newest AS (
        SELECT * FROM matching ORDER BY order_place DESC LIMIT %(limit)s
    )
    SELECT id, order_place, rank, (SELECT {text} FROM {table} WHERE ctid = newest.row) AS content FROM newest
"""


@dataclass(frozen=True)
class PatternSearch:
    """Regular expressions over what is within reach, the newest first. Call it within `limits.bounded`.

    With `by_trigrams`, an index tells which messages can match at all.
    """

    reach: Reach
    limit: int
    by_trigrams: bool = False

    def matching(self, pattern: Pattern, *, deadline: Deadline, key: Key | None = None) -> list[Spot]:
        """The first that match and stand behind the key; Invalid if the pattern is not a valid one."""
        spots: list[Spot] = []
        for table in self.reach.tables:
            if table is MESSAGES:
                spots += self._messages(pattern, key, deadline)
            else:
                # Once there are as many as may be given, only what is newer can still come before them.
                condition, values = within(self.reach, table, key, last_place(spots, self.limit))
                deadline.impose()
                spots += self._asked(_NEWEST, table, pattern, condition, {**values, "limit": self.limit})
        return ordered(spots)[: self.limit]

    def _messages(self, pattern: Pattern, key: Key | None, deadline: Deadline) -> list[Spot]:
        """Batch after batch; where an index tells what can match, the first few and then all the rest at once."""
        place = self.reach.place(MESSAGES)
        has_index = self.by_trigrams and pattern.literal is not None
        found: list[Spot] = []
        for number, (after, upto) in enumerate(batches(self.reach.low, high_before(self.reach, key))):
            if number:
                deadline.impose()
            by_index = has_index and number == _BATCHES_BEFORE_THE_INDEX
            statement = _NEWEST_BY_TRIGRAMS if by_index else _NEWEST
            values = {"after": self.reach.low if by_index else after, "upto": upto, "limit": self.limit - len(found)}
            found += self._asked(statement, MESSAGES, pattern, f"{place} > %(after)s AND {place} <= %(upto)s", values)
            if by_index or len(found) >= self.limit:
                break
        return found

    def _asked(
        self, statement: str, table: Table, pattern: Pattern, condition: str, values: dict[str, Any]
    ) -> list[Spot]:
        place = self.reach.place(table)
        by_id = f'rank DESC, {table.id} COLLATE "C" DESC'
        newest = statement.format(
            id=table.id,
            place=place,
            rank=table.rank,
            text=table.text,
            table=table.name,
            where=self.reach.where(table),
            within=condition,
            has_text=table.has_text,
            matches=_matches(pattern, table.text),
            order=f"{place} DESC" if table is MESSAGES else f"{place} DESC, {by_id}",
        )
        asked = _MATCHING.format(width=WIDTH, newest=newest, collated=collated(table))
        return _spots(asked, pattern, {**self.reach.values, **values})


def _matches(pattern: Pattern, text: str) -> str:
    if pattern.literal is None:
        return f"{text} ~ %(pattern)s"
    # Looking for a literal takes half the time. As a CASE, because of two conditions the planner may take either first.
    return f"CASE WHEN strpos({text}, %(literal)s) > 0 THEN {text} ~ %(pattern)s ELSE false END"


def _spots(statement: str, pattern: Pattern, values: dict[str, Any]) -> list[Spot]:
    try:
        with connection.cursor() as cursor:
            cursor.execute(statement, {**values, "pattern": pattern.expression, "literal": pattern.literal})
            fetched = cursor.fetchall()
    except DataError as error:
        raise invalid_pattern(error) from error
    return [
        Spot(id, place, rank, around(content, begin - 1, end - 1, offset=offset))
        for id, place, rank, begin, end, content, offset in fetched
    ]


def invalid_pattern(error: DataError) -> Invalid:
    """The refusal of an expression that the database does not understand."""
    said = str(error).splitlines()[0].removeprefix("invalid regular expression: ")
    return refused(f"This is not a valid regular expression: {said}.")
