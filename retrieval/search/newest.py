"""The newest texts that hold the words of a question, all kinds of things in one statement."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from conversations.reading import bound, rows_as_planned
from retrieval.search import ranking
from retrieval.search.meanings import Meanings
from retrieval.search.places import Key, Spot, collated, high_before, ordered, within
from retrieval.search.query import Question
from retrieval.search.query_plan import Plan
from retrieval.search.reach import Reach
from retrieval.search.tables import FILES, MESSAGE_RANK, MESSAGES, SUMMARIES, Table
from retrieval.search.trying import one_after_the_other

# A walk looks at so many rows at least, if it promises anything; what it has not found among them, or among many times
# as many as should have been enough, is clustered elsewhere, and the index has it.
_WALKED, _MANY_TIMES = 5000, 4
# So few rows that to walk past them tells sooner than any figures whether words come together.
_AT_ONCE = 500
# To fetch so few rows, whosever they are, takes less time than to begin with the newest.
_FEW = 300
# In so many of the newest, a word that is in one text of five hundred is found often enough.
_UNCOUNTED = 10_000
# Rows that the index picks out take long to be asked for more than words; of so many, a walk is sooner done.
_MANY = 1500

# A walk by place. As it is written, the index for words does not serve the condition, and the planner takes it to hold
# for every other row: where it expects hardly any, it would rather read and sort them all.
_WALKING = """
    SELECT {id} AS id, {place} AS order_place, ctid AS row FROM {table}
    WHERE {where} AND {within} AND CASE WHEN {vector} @@ %(query)s::tsquery THEN true ELSE false END
    ORDER BY {place} DESC LIMIT %(limit)s
"""
_COLLECTED = """
    SELECT {id} AS id, {place} AS order_place, ctid AS row FROM {table} WHERE {where} AND {within} AND {answering}
"""
# Materialized, so that the index for words finds the rows: for the order, the planner would walk through all of them.
# What is far is looked for only if what is near was not enough.
_MESSAGES = """
    near AS MATERIALIZED ({near}),
    far AS MATERIALIZED ({far} AND (SELECT count(*) FROM near) < %(limit)s),
    said AS MATERIALIZED (
        SELECT * FROM (TABLE near UNION ALL TABLE far) AS found ORDER BY order_place DESC LIMIT %(limit)s
    )
"""
_ALL_MESSAGES = """
    near AS MATERIALIZED ({near}),
    said AS MATERIALIZED (SELECT * FROM near ORDER BY order_place DESC LIMIT %(limit)s)
"""
_OTHERS = """
    {name} AS MATERIALIZED (
        SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
        FROM {table} WHERE {where} AND {within} AND {answering}
    )
"""
# Once there are as many messages as may be given, only what is newer can still come before the last of them.
_NOT_BEFORE_MESSAGES = "{place} >= (SELECT CASE WHEN count(*) < %(limit)s THEN 0 ELSE min(order_place) END FROM said)"
_SAID = "SELECT {number}, id::text, order_place, {rank} AS rank, {held} FROM said"
_NEWEST_OTHERS = """(
    SELECT {number}, id, order_place, rank, {held} FROM {name}
    ORDER BY order_place DESC, rank DESC, id{collated} DESC LIMIT %(limit)s
)"""
_HELD = """(
    SELECT tsvector_to_array(ts_filter(setweight({vector}, 'A', %(lexemes)s::text[]), '{{a}}'))
    FROM {table} WHERE ctid = {name}.row
)"""
_NAMES = {MESSAGES: "said", SUMMARIES: "told", FILES: "kept"}


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
class _Try:
    """One way to look a question up: as it was read, and with which anchors of its plan."""

    question: Question
    how: Plan
    chosen: Plan
    reading: int

    @property
    def is_any(self) -> bool:
        """Whether texts with any of the words are looked for."""
        return bool(self.reading % 2)


@dataclass(frozen=True)
class NewestWords:
    """Texts that hold the words of a question, the newest first. Call it within `limits.bounded`.

    A question is read as it stands; if nothing answers that, by any of its words, and then with its phrases taken
    apart. Later pages are read as the first was.
    """

    reach: Reach
    meanings: Meanings
    limit: int

    def read(self, readings: Sequence[Question], *, reading: int | None = None, key: Key | None = None) -> Read | None:
        """The first that stand behind the key; None if the query has no word that could be looked for.

        In two statements at most.
        """
        tries = [each for each in self._tries(readings) if reading is None or each.reading == reading]
        if not tries:
            return None
        spots = self._spots(tries[:1], key)
        if len(tries) > 1 and not spots[0]:
            spots += self._spots(tries[1:], key)
        for found, each in zip(spots, tries, strict=False):
            if found:
                return self._found(found, each)
        return self._found((), tries[-1])

    def _tries(self, readings: Sequence[Question]) -> Iterator[_Try]:
        for number, question in enumerate(readings):
            how = self.meanings.understood(question, self.reach).how
            if how is None:
                return
            yield _Try(question, how, how.for_every_clause(), 2 * number)
            yield _Try(question, how, how, 2 * number + 1)
            if len(how.anchors) < len(how.lexemes):
                yield _Try(question, how, how.for_any_lexeme(), 2 * number + 1)

    def _found(self, spots: Sequence[Spot], tried: _Try) -> Read:
        how = tried.how
        terms = tuple(dict.fromkeys(term.text for term in tried.question.terms))
        used, dropped = terms, terms[:0]
        if tried.is_any:
            held = {lexeme for spot in spots for lexeme in spot.held}
            meant = [each for clause in how.clauses for each in clause]
            used = tuple(dict.fromkeys(each.term.text for each in meant if not held.isdisjoint(each.lexemes)))
            dropped = tuple(term for term in terms if term not in used)
        size = self.reach.rows
        rarity = {each: ranking.rarity(found=how.expected.get(each, 0.0), among=size) for each in how.lexemes}
        return Read(
            tuple(spots),
            how if tried.is_any else tried.chosen,
            tried.reading,
            relaxed=tried.reading > 0,
            lexemes=rarity,
            used=used,
            dropped=dropped,
        )

    def _spots(self, tries: Sequence[_Try], key: Key | None) -> list[list[Spot]]:
        """What each try gives, up to the first that gives anything."""
        asked = [self._statement(number, each, key) for number, each in enumerate(tries)]
        spots: list[list[Spot]] = [[] for _ in tries]
        # Planned for these values: how often the words occur decides the plan.
        for number, id, place, rank, held in rows_as_planned(one_after_the_other(asked, [1] * len(asked))):
            spot = Spot(int(id) if rank == MESSAGE_RANK else id, place, rank, held=tuple(held or ()))
            spots[number].append(spot)
        return [ordered(each)[: self.limit] for each in spots]

    def _statement(self, number: int, tried: _Try, key: Key | None) -> str:
        """Of each kind as many as may be given; of all these, the newest are."""
        how = tried.chosen
        steps: list[str] = []
        answers: list[str] = []
        values: dict[str, Any] = {"limit": self.limit, "lexemes": list(how.lexemes)}
        for table in self.reach.tables:
            name = _NAMES[table]
            held = _HELD.format(vector=table.vector, table=table.name, name=name) if tried.is_any else "NULL::text[]"
            if table is MESSAGES:
                steps.append(self._messages(how, high_before(self.reach, key), values))
                answers.append(_SAID.format(number=number, rank=MESSAGE_RANK, held=held))
            else:
                condition, of_key = within(self.reach, table, key, None)
                if MESSAGES in self.reach.tables:
                    condition += " AND " + _NOT_BEFORE_MESSAGES.format(place=self.reach.place(table))
                alone = how.by_words_alone
                steps.append(self._written(_OTHERS, table, how, condition, alone, name=name, rank=table.rank))
                answers.append(_NEWEST_OTHERS.format(number=number, name=name, held=held, collated=collated(table)))
                values |= of_key
        statement = f"WITH {', '.join(steps)} {' UNION ALL '.join(answers)}"
        return bound(statement, {**self.reach.values, **values, "query": how.query, "sought": how.sought})

    def _messages(self, how: Plan, high: int, values: dict[str, Any]) -> str:
        """The steps that lead to messages: near ones by a walk or by the index, whichever is sooner done; then all."""
        reach = self.reach
        walks, looked_at = self._first_look(how)
        after = reach.low if looked_at is None else max(reach.low, high - looked_at)
        statement = _WALKING if walks else _COLLECTED
        # What is near is found by its place, at least as well as by its words.
        is_all = after <= reach.low
        alone = how.by_words_alone and is_all and not walks
        near = self._written(statement, MESSAGES, how, self._between("near", after, high, values), alone)
        if is_all:
            return _ALL_MESSAGES.format(near=near)
        condition = self._between("far", reach.low, after, values)
        far = self._written(_COLLECTED, MESSAGES, how, condition, how.by_words_alone)
        return _MESSAGES.format(near=near, far=far)

    def _first_look(self, how: Plan) -> tuple[bool, int | None]:
        """Whether to walk back from the newest, and how many places to look at, by either way, before the rest."""
        share, reach = how.expected_share(), self.reach
        if reach.of_tools is not None:
            return False, None
        if reach.picks_among_messages:
            # What criteria pick is spread as words are: to ask them of every row that the index gives takes longest.
            return how.greatest_share() * reach.rows > _MANY, None
        # Among several conversations, the places between are those of others.
        apart = max(1.0, (reach.high - reach.low) / max(1, reach.rows))
        if not share:
            # Too rare to be counted, one word may still be in thousands of texts; several hardly ever are.
            is_worth_a_look = len(how.lexemes) == 1 and reach.rows > _MANY_TIMES * _UNCOUNTED
            return False, int(_UNCOUNTED * apart) if is_worth_a_look else None
        enough, to_collect = self.limit / share * apart, how.rows_worth_collecting()
        # Twice, because words mostly come in clusters, and a walk in vain is followed by the index.
        if 2 * enough <= to_collect:
            return True, int(min(to_collect, max(_WALKED, _MANY_TIMES * enough)))
        if self.limit / how.greatest_share() * apart <= _AT_ONCE <= to_collect:
            # These words may come together more often than others do.
            return True, _AT_ONCE
        return False, int(2 * enough) if how.expected_everywhere() > _FEW else None

    def _between(self, name: str, after: int, upto: int, values: dict[str, Any]) -> str:
        place = self.reach.place(MESSAGES)
        values |= {f"{name}_after": after, f"{name}_upto": upto}
        # What is true of every message there is not asked: the index for words is not to be left for it.
        conditions = [f"{place} > %({name}_after)s"] if after > 0 else []
        conditions += [f"{place} <= %({name}_upto)s"] if upto < self.reach.newest else []
        return " AND ".join(conditions) or "true"

    def _written(
        self, statement: str, table: Table, how: Plan, condition: str, by_words_alone: bool, **names: Any
    ) -> str:
        return statement.format(
            id=table.id,
            table=table.name,
            place=self.reach.place(table),
            where=self.reach.where(table, by_words_alone=by_words_alone),
            within=condition,
            vector=table.vector,
            answering=table.answering(how),
            **names,
        )
