"""Everything in the order in which it came, the newest first: the places, the pages, and the search by words in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from retrieval.search import ranking
from retrieval.search.full_text import understood
from retrieval.search.query import Question, loosened, parse
from retrieval.search.query_plan import Plan
from retrieval.search.reach import Reach
from retrieval.search.tables import MESSAGES, Table
from retrieval.types import Snippet

Key = tuple[int, int, str]

FIRST_BATCH, LARGEST_BATCH = 1000, 64_000
# What so many rows are expected to hold is found sooner by walking back from the newest than by collecting all of it:
# the index gives about as many rows in the time that it takes to look at them all, and a walk looks at a few hundred.
_FREQUENT = 1500
# A walk looks at so many rows; what it has not found among them is clustered elsewhere, and the index has it.
_WALKED = 5000

# Materialized, so that the index for words finds the rows: for the order, the planner would walk through all of them.
_COLLECTED = """
    WITH holding AS MATERIALIZED (
        SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
        FROM {table} WHERE {where} AND {within} AND {answering}
    )
    SELECT id, order_place, rank, {held}
    FROM holding ORDER BY order_place DESC, rank DESC, id{collated} DESC LIMIT %(limit)s
"""
_WALKING = """
    SELECT id, order_place, rank, {held} FROM (
        SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
        FROM {table} WHERE {where} AND {within} AND {answering}
        ORDER BY {place} DESC LIMIT %(limit)s
    ) AS holding
    ORDER BY order_place DESC
"""
_HELD = """(
    SELECT tsvector_to_array(ts_filter(setweight({tsv}, 'A', %(lexemes)s::text[]), '{{a}}'))
    FROM {table} WHERE ctid = holding.row
)"""


@dataclass(frozen=True)
class Spot:
    """A row that was found, and where it stands by when it came; `held`: what it holds of what was looked for."""

    id: int | str
    order_place: int
    rank: int
    snippet: Snippet | None = None
    held: tuple[str, ...] = ()

    @property
    def key(self) -> Key:
        """Its place in the order, where no two are alike; the greatest comes first."""
        return (self.order_place, self.rank, str(self.id))


def ordered(spots: Iterable[Spot]) -> list[Spot]:
    return sorted(spots, key=lambda spot: spot.key, reverse=True)


def collated(table: Table) -> str:
    """Ids are compared as Python compares them, whatever the database's language."""
    return "" if table is MESSAGES else ' COLLATE "C"'


def batches(low: int, high: int) -> Iterator[tuple[int, int]]:
    """Ranges (after, up to) from the newest place down to the first; they grow, as near things are found at once."""
    size, upto = FIRST_BATCH, high
    while upto > low:
        yield max(low, upto - size), upto
        upto -= size
        size = min(4 * size, LARGEST_BATCH)


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
        values["key_place"] = key[0]
    elif key is not None:
        own = f'({place}, {table.rank}, {table.id} COLLATE "C")'
        conditions.append(f"{own} < (%(key_place)s, %(key_rank)s, %(key_id)s)")
        values |= {"key_place": key[0], "key_rank": key[1], "key_id": key[2]}
    if since is not None:
        conditions.append(f"{place} >= %(from_place)s")
        values["from_place"] = since
    return " AND ".join(conditions) or "true", values


@dataclass(frozen=True)
class Read:
    """The newest that answer a question as it was read; `lexemes`: what to show of them, and its worth."""

    spots: tuple[Spot, ...]
    how: Plan
    reading: int
    relaxed: bool
    lexemes: dict[str, float]
    used: tuple[str, ...]
    dropped: tuple[str, ...]


@dataclass(frozen=True)
class NewestWords:
    """Texts that hold the words of a question, the newest first. Call it within `limits.bounded`.

    A question is read as it stands; if nothing answers that, by any of its words, and then with its phrases taken
    apart. Later pages are read as the first was.
    """

    reach: Reach
    limit: int

    def read(self, query: str, *, reading: int | None = None, key: Key | None = None) -> Read | None:
        """The first that stand behind the key; None if the query has no word that could be looked for."""
        question = parse(query)
        readings = [question]
        if any(term.is_phrase for term in question.terms):
            readings.append(loosened(question))
        last: Read | None = None
        for number, each in enumerate(readings):
            _, how = understood(each, self.reach)
            if how is None:
                return last
            for relaxed in (False, True):
                code = 2 * number + relaxed
                if reading is not None and reading != code:
                    continue
                last = self._found(each, how, code, key)
                if last.spots or reading is not None:
                    return last
        return last

    def _found(self, question: Question, how: Plan, code: int, key: Key | None) -> Read:
        is_any = bool(code % 2)
        chosen = how if is_any else how.for_every_clause()
        spots = self._spots(chosen, key, is_any)
        if is_any and not spots and len(how.anchors) < len(how.lexemes):
            spots = self._spots(how.for_any_lexeme(), key, is_any)
        terms = tuple(dict.fromkeys(term.text for term in question.terms))
        used, dropped = terms, terms[:0]
        if is_any:
            held = {lexeme for spot in spots for lexeme in spot.held}
            meant = [each for clause in how.clauses for each in clause]
            used = tuple(dict.fromkeys(each.term.text for each in meant if not held.isdisjoint(each.lexemes)))
            dropped = tuple(term for term in terms if term not in used)
        size = self.reach.rows
        rarity = {each: ranking.rarity(found=how.expected.get(each, 0.0), among=size) for each in how.lexemes}
        return Read(tuple(spots), chosen, code, relaxed=code > 0, lexemes=rarity, used=used, dropped=dropped)

    def _spots(self, how: Plan, key: Key | None, wants_held: bool) -> list[Spot]:
        spots: list[Spot] = []
        for table in self.reach.tables:
            # Once there are as many as may be given, only what is newer can still come before them.
            since = last_place(spots, self.limit)
            if table is MESSAGES:
                spots += self._messages(how, key, wants_held)
            else:
                condition, values = within(self.reach, table, key, since)
                spots += self._asked(_COLLECTED, table, how, condition, values, self.limit, wants_held)
        return ordered(spots)[: self.limit]

    def _messages(self, how: Plan, key: Key | None, wants_held: bool) -> list[Spot]:
        """By a walk as far as that promises anything, and the rest from the index."""
        high = high_before(self.reach, key)
        spots: list[Spot] = []
        if how.expected_matches() > _FREQUENT:
            # What criteria pick is spread as words are: to ask them of every row that the index gives takes longest.
            walked = high if self.reach.picks_among_messages else _WALKED
            for after, upto in batches(max(self.reach.low, high - walked), high):
                spots += self._between(_WALKING, after, upto, how, self.limit - len(spots), wants_held)
                if len(spots) >= self.limit:
                    return spots
            high -= walked
        if high > self.reach.low:
            spots += self._between(_COLLECTED, self.reach.low, high, how, self.limit - len(spots), wants_held)
        return spots

    def _between(self, statement: str, after: int, upto: int, how: Plan, limit: int, wants_held: bool) -> list[Spot]:
        place = self.reach.place(MESSAGES)
        # What is true of every message there is not asked: the index for words is not to be left for it.
        conditions = [f"{place} > %(after)s"] if after > 0 else []
        conditions += [f"{place} <= %(upto)s"] if upto < self.reach.newest else []
        values = {"after": after, "upto": upto}
        return self._asked(statement, MESSAGES, how, " AND ".join(conditions) or "true", values, limit, wants_held)

    def _asked(
        self,
        statement: str,
        table: Table,
        how: Plan,
        condition: str,
        values: dict[str, Any],
        limit: int,
        wants_held: bool,
    ) -> list[Spot]:
        asked = statement.format(
            id=table.id,
            table=table.name,
            place=self.reach.place(table),
            rank=table.rank,
            # A walk is by place, and needs the index for that.
            where=self.reach.where(table, by_words_alone=how.by_words_alone and statement is _COLLECTED),
            within=condition,
            answering=f"{table.vector} @@ %(query)s::tsquery" if statement is _WALKING else table.answering(how),
            collated=collated(table),
            held=_HELD.format(table=table.name, tsv=table.vector) if wants_held else "NULL",
        )
        given = {**self.reach.values, **values, "query": how.query, "sought": how.sought, "limit": limit}
        given["lexemes"] = list(how.lexemes)
        # Not prepared: how often the words occur decides the plan.
        with connection.cursor() as cursor:
            cursor.execute(asked, given)
            return [Spot(id, place, rank, held=tuple(held or ())) for id, place, rank, held in cursor.fetchall()]


def last_place(spots: Sequence[Spot], limit: int) -> int | None:
    """The place before which nothing can be among the first `limit` any more, once there are so many."""
    return ordered(spots)[limit - 1].order_place if len(spots) >= limit else None
