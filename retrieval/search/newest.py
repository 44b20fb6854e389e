"""The newest texts with the words of a question: first where they are near, mostly enough; then all the others.

Messages that one index alone leads to are shown by the statement that finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conversations.reading import bound, rows, rows_as_planned
from retrieval.search import ranking
from retrieval.search.first_look import Stretch, stretches
from retrieval.search.matches import of_messages
from retrieval.search.meanings import Meanings
from retrieval.search.places import Key, Spot, collated, high_before, ordered, within
from retrieval.search.query import Question
from retrieval.search.query_plan import Plan
from retrieval.search.reach import Reach
from retrieval.search.tables import FILES, MESSAGE_RANK, MESSAGES, SUMMARIES, Table
from retrieval.search.trying import one_after_the_other

# A walk by place. As it is written, the index for words does not serve the condition, and the planner takes it to hold
# for every other row: where it expects hardly any, it would rather read and sort them all.
_WALKING = """
    SELECT {id} AS id, {place} AS order_place, ctid AS row FROM {table}
    WHERE {where} AND {within} AND CASE WHEN {vector} @@ %(query)s::tsquery THEN true ELSE false END
    ORDER BY {place} DESC LIMIT %(messages)s
"""
_COLLECTED = """
    SELECT {id} AS id, {place} AS order_place, ctid AS row FROM {table} WHERE {where} AND {within} AND {answering}
"""
# Materialized, so that the index for words finds the rows: for the order, the planner would walk through all of them.
# What is far is looked for only if what is near was not enough.
_MESSAGES = """
    near AS MATERIALIZED ({near}),
    far AS MATERIALIZED ({far} AND (SELECT count(*) FROM near) < %(messages)s),
    said AS MATERIALIZED (
        SELECT * FROM (TABLE near UNION ALL TABLE far) AS found ORDER BY order_place DESC LIMIT %(messages)s
    )
"""
_ALL_MESSAGES = """
    near AS MATERIALIZED ({near}),
    said AS MATERIALIZED (SELECT * FROM near ORDER BY order_place DESC LIMIT %(messages)s)
"""
_OTHERS = """
    {name} AS MATERIALIZED (
        SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
        FROM {table} WHERE {where} AND {within} AND {answering}
    )
"""
# As for messages: of a few summaries behind a place it is soon told whether they have the words, and nobody foresees
# how few they are.
_NEAR_OTHERS = """
    {name} AS MATERIALIZED (
        SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
        FROM {table}
        WHERE {where} AND {within} AND CASE WHEN {vector} @@ %(query)s::tsquery THEN true ELSE false END
    )
"""
# Once there are as many messages as may be given, only what is newer can still come before the last of them; until
# then, what is near is not all.
_NOT_BEFORE_MESSAGES = """
    {place} >= (SELECT CASE WHEN count(*) < %(messages)s THEN {otherwise} ELSE min(order_place) END FROM said)
"""
_SAID = "SELECT {number}, id::text, order_place, {rank} AS rank, {held} FROM said"
_SHOWN = f"SELECT * FROM {of_messages('ARRAY(SELECT id FROM said)')} AS shown"
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
class _Asked:
    """A statement and its values. `is_plain`: there is one good way to answer it, whatever the values are.

    `is_any`: what each text holds has to be told, too.
    """

    steps: str
    answers: str
    values: Mapping[str, Any]
    is_plain: bool
    is_any: bool

    @property
    def text(self) -> str:
        """The statement for where the texts stand, and what they hold."""
        return f"WITH {self.steps} {self.answers}"

    @property
    def showing(self) -> str:
        """The same for what is shown of messages, as rows of `matches.of_messages`."""
        return f"WITH {self.steps} {_SHOWN}"


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

        In three statements at most.
        """
        tries = [each for each in self._tries(readings) if reading is None or each.reading == reading]
        if not tries:
            return None
        spots = self._spots(tries[:1], key)
        if len(tries) > 1 and not spots[0]:
            spots += self._spots(tries[1:], key)
        for found, each in zip(spots, tries, strict=False):
            if found:
                return self._found(found[: self.limit], each)
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
        high = high_before(self.reach, key)
        looks = [stretches(each.chosen, self.reach, high=high, limit=self.limit) for each in tries]
        if len(tries) == 1 and self.reach.tables[0] is MESSAGES and FILES not in self.reach.tables:
            return [self._stretch_by_stretch(tries[0], looks[0], key)]
        asked = zip(tries, looks, strict=True)
        return self._given([self._statement(number, *each, key) for number, each in enumerate(asked)])

    def _stretch_by_stretch(self, tried: _Try, looks: Sequence[Stretch], key: Key | None) -> list[Spot]:
        """Mostly what is near is enough, and to plan the rest in vain takes as long as to find that."""
        *near, last = looks
        messages: list[Spot] = []
        for stretch in near:
            spots = self._given([self._statement(0, tried, [stretch], key, is_near=True)])[0]
            messages += [spot for spot in spots if spot.rank == MESSAGE_RANK]
            if len(messages) >= self.limit:
                return spots
        rest = self._statement(0, tried, [last], key, messages=self.limit - len(messages))
        return ordered([*messages, *self._given([rest])[0]])

    def _given(self, asked: Sequence[_Asked]) -> list[list[Spot]]:
        """What each of these gives, the newest first, up to the first that gives anything: so many of each kind."""
        if len(asked) == 1 and asked[0].is_plain and not asked[0].is_any and self.reach.tables == (MESSAGES,):
            shown = rows(asked[0].showing, asked[0].values)
            return [ordered(Spot(int(row[0]), row[2], MESSAGE_RANK, row=row) for row in shown)]
        if len(asked) == 1 and asked[0].is_plain:
            found = rows(asked[0].text, asked[0].values)
        else:
            # Planned for these values: how often the words occur decides the plan.
            texts = [bound(each.text, each.values) for each in asked]
            found = rows_as_planned(one_after_the_other(texts, [1] * len(asked)))
        spots: list[list[Spot]] = [[] for _ in asked]
        for number, id, place, rank, held in found:
            spot = Spot(int(id) if rank == MESSAGE_RANK else id, place, rank, held=tuple(held or ()))
            spots[number].append(spot)
        return [ordered(each) for each in spots]

    def _statement(
        self,
        number: int,
        tried: _Try,
        looks: Sequence[Stretch],
        key: Key | None,
        *,
        messages: int | None = None,
        is_near: bool = False,
    ) -> _Asked:
        """Of each kind as many as may be given, or as are still wanted of the messages; of all these, the newest are.

        `is_near`: there are more messages than those of the stretch, and unless it has enough, nothing else is given.
        """
        how, reach = tried.chosen, self.reach
        steps: list[str] = []
        answers: list[str] = []
        values: dict[str, Any] = {"limit": self.limit, "messages": messages or self.limit}
        values["lexemes"] = list(how.lexemes)
        for table in reach.tables:
            name = _NAMES[table]
            held = _HELD.format(vector=table.vector, table=table.name, name=name) if tried.is_any else "NULL::text[]"
            if table is MESSAGES:
                steps.append(self._messages(how, looks, values))
                answers.append(_SAID.format(number=number, rank=MESSAGE_RANK, held=held))
            else:
                condition, of_key = within(reach, table, key, None)
                if MESSAGES in reach.tables:
                    otherwise = "NULL" if is_near else "0"
                    condition += " AND " + _NOT_BEFORE_MESSAGES.format(place=reach.place(table), otherwise=otherwise)
                if is_near and looks[0].walks:
                    statement, alone = _NEAR_OTHERS, False
                else:
                    statement, alone = _OTHERS, how.by_words_alone
                steps.append(self._written(statement, table, how, condition, alone, name=name, rank=table.rank))
                answers.append(_NEWEST_OTHERS.format(number=number, name=name, held=held, collated=collated(table)))
                values |= of_key
        return _Asked(
            ", ".join(steps),
            " UNION ALL ".join(answers),
            {**reach.values, **values, "query": how.query, "sought": how.sought},
            self._is_plain(how, looks, is_near=is_near),
            tried.is_any,
        )

    def _is_plain(self, how: Plan, looks: Sequence[Stretch], *, is_near: bool) -> bool:
        """Whether only one index leads to what is asked for; to summaries, unless they are near, that for words."""
        walks = is_near or self.reach.tables == (MESSAGES,)
        is_by_one_index = all((each.walks and walks) or each.by_words_alone for each in looks)
        return is_by_one_index and self.reach.is_all_said_in_one_conversation and how.index.is_settled

    def _messages(self, how: Plan, looks: Sequence[Stretch], values: dict[str, Any]) -> str:
        """The steps that lead to messages."""
        found = {}
        for name, each in zip(("near", "far"), looks, strict=False):
            condition = self._between(name, each, values)
            statement = _WALKING if each.walks else _COLLECTED
            found[name] = self._written(statement, MESSAGES, how, condition, each.by_words_alone)
        return (_MESSAGES if "far" in found else _ALL_MESSAGES).format(**found)

    def _between(self, name: str, stretch: Stretch, values: dict[str, Any]) -> str:
        place = self.reach.place(MESSAGES)
        values |= {f"{name}_after": stretch.after, f"{name}_upto": stretch.upto}
        # What is true of every message there is not asked: the index for words is not to be left for it.
        conditions = [f"{place} > %({name}_after)s"] if stretch.after > 0 else []
        conditions += [f"{place} <= %({name}_upto)s"] if stretch.upto < self.reach.newest else []
        if stretch.by_words_alone:
            # As they are written, no other index serves them.
            conditions = [f"({each}) IS TRUE" for each in conditions]
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
