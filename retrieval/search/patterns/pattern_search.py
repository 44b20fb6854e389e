"""Finds what a regular expression matches, newest first: in what is near, then in all the rest, then in other things.

However long a history is, it holds no more than its matches in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DataError

from conversations.errors import Invalid
from conversations.sql import bound, rows_as_planned
from retrieval.limits import Deadline
from retrieval.search.filters import Reach
from retrieval.search.ordering import Key, Spot, collated, high_before, last_place, ordered, within
from retrieval.search.patterns.pattern_translation import Pattern, refused
from retrieval.search.searchables import MESSAGES, Table
from retrieval.search.snippets import WIDTH, around

# So many of the newest are looked at first: what is frequent is found among them, where the index of trigrams would
# first collect everything.
NEAR = 1000

# A match's place is worked out only for what is given back; the offset keeps the planner from doing it before. What is
# no expression is refused even where there is nothing to match it with: a constant is worked out in any case.
_MATCHING = """
    SELECT id, order_place, rank, from_place, to_place,
           substr(content, greatest(1, from_place - {width}), {width} * 3), greatest(0, from_place - {width} - 1)
    FROM ({placed}) AS found
    WHERE regexp_instr('', %(expression)s) >= 0
    ORDER BY order_place DESC, rank DESC, id{collated} DESC
"""
_PLACED = """
    SELECT *, regexp_instr(content, %(expression)s) AS from_place,
           regexp_instr(content, %(expression)s, 1, 1, 1) AS to_place
    FROM ({newest}) AS newest OFFSET 0
"""
# To tell what was matched takes a seventh of the time that its place does, and its end as much again.
_PLACED_BY_WHAT_MATCHED = """
    SELECT *, from_place + length(matched) AS to_place
    FROM (
        SELECT *, strpos(content, matched) AS from_place
        FROM (SELECT *, substring(content FROM %(group)s) AS matched FROM ({newest}) AS newest OFFSET 0) AS told
        OFFSET 0
    ) AS found
"""
_NEWEST = """
    SELECT {id} AS id, {place} AS order_place, {rank} AS rank, {text} AS content
    FROM {table} WHERE {where} AND {within} AND {has_text} AND {matches}
    ORDER BY {order} LIMIT %(limit)s
"""
_OTHERS = """
    SELECT * FROM ({each}) AS found ORDER BY order_place DESC, rank DESC, id COLLATE "C" DESC LIMIT %(limit)s
"""
# For the order alone, the planner would walk through all rows and not look into the index of trigrams.
_NEWEST_BY_TRIGRAMS = """
    WITH matching AS MATERIALIZED (
        SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
        FROM {table} WHERE {where} AND {within} AND {has_text} AND {text} ~ %(expression)s
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
        spots = self._messages(pattern, key) if MESSAGES in self.reach.tables else []
        others = [table for table in self.reach.tables if table is not MESSAGES]
        if others:
            deadline.impose()
            spots += self._others(others, pattern, key, last_place(spots, self.limit))
        return ordered(spots)[: self.limit]

    def _messages(self, pattern: Pattern, key: Key | None) -> list[Spot]:
        """The newest of those that are near; if these are not enough, of all the others."""
        place, low, high = self.reach.place(MESSAGES), self.reach.low, high_before(self.reach, key)
        condition, near = f"{place} > %(after)s AND {place} <= %(upto)s", max(low, high - NEAR)
        by_index = self.by_trigrams and pattern.literal is not None
        found: list[Spot] = []
        for statement, after, upto in (
            (_NEWEST, near, high),
            (_NEWEST_BY_TRIGRAMS if by_index else _NEWEST, low, near),
        ):
            if after < upto and len(found) < self.limit:
                values = {"after": after, "upto": upto, "limit": self.limit - len(found)}
                found += self._shown(self._newest(statement, MESSAGES, pattern, condition), MESSAGES, pattern, values)
        return found

    def _others(self, tables: Sequence[Table], pattern: Pattern, key: Key | None, since: int | None) -> list[Spot]:
        """Once there are as many as may be given, only what is newer can still come before them."""
        values: dict[str, Any] = {"limit": self.limit}
        asked = []
        for table in tables:
            condition, of_table = within(self.reach, table, key, since)
            asked.append(f"({self._newest(_NEWEST, table, pattern, condition)})")
            values |= of_table
        newest = asked[0] if len(asked) == 1 else _OTHERS.format(each=" UNION ALL ".join(asked))
        return self._shown(newest, tables[0], pattern, values)

    def _newest(self, statement: str, table: Table, pattern: Pattern, condition: str) -> str:
        place = self.reach.place(table)
        by_id = f'rank DESC, {table.id} COLLATE "C" DESC'
        return statement.format(
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

    def _shown(self, newest: str, table: Table, pattern: Pattern, values: dict[str, Any]) -> list[Spot]:
        placed = _PLACED if pattern.group is None else _PLACED_BY_WHAT_MATCHED
        asked = _MATCHING.format(width=WIDTH, placed=placed.format(newest=newest), collated=collated(table))
        told = {**self.reach.values, **values, **vars(pattern)}
        try:
            fetched = rows_as_planned(bound(asked, told))
        except DataError as error:
            raise invalid_pattern(error) from error
        return [
            Spot(id, place, rank, around(content, begin - 1, end - 1, offset=offset))
            for id, place, rank, begin, end, content, offset in fetched
        ]


def _matches(pattern: Pattern, text: str) -> str:
    # As a CASE, of which the planner takes it that it holds for every other row: it walks back and stops soon.
    if pattern.literal is None:
        return f"CASE WHEN {text} ~ %(expression)s THEN true ELSE false END"
    # Looking for a literal takes half the time; and of two conditions the planner may take either first.
    return f"CASE WHEN strpos({text}, %(literal)s) > 0 THEN {text} ~ %(expression)s ELSE false END"


def invalid_pattern(error: DataError) -> Invalid:
    """The refusal of an expression that the database does not understand."""
    said = str(error).splitlines()[0].removeprefix("invalid regular expression: ")
    return refused(f"This is not a valid regular expression: {said}.")
