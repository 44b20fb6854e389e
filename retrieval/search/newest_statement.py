"""How the newest texts with some words are asked for: one statement for all kinds of things, in a stretch or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from conversations.sql import bigint
from retrieval.search.filters import Reach
from retrieval.search.first_look import Stretch
from retrieval.search.matches import shown_of
from retrieval.search.ordering import Key, collated, high_before, within
from retrieval.search.query.compiled_query import Plan
from retrieval.search.searchables import FILES, MESSAGE_RANK, MESSAGES, SUMMARIES, Table

# Asked of each row that its place leads to. As it is written, the index for words does not serve it, and the planner
# takes it to hold for every other row: where it expects hardly any, it would rather read and sort them all.
_CHECKED = "CASE WHEN {vector} @@ %(query)s::tsquery THEN true ELSE false END"
_COLLECTED = """
    SELECT {id} AS id, {place} AS order_place, ctid AS row FROM {table} WHERE {where} AND {within} AND {answering}
"""
_WALKING = _COLLECTED + " ORDER BY {place} DESC LIMIT %(messages)s"
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
# To ask a row for its words takes as long as to fetch several: where the index gives more than answers, the newest are
# asked, one after the other, until there are enough.
_ASKED_MESSAGES = f"""
    near AS MATERIALIZED ({{near}}),
    said AS MATERIALIZED (
        SELECT * FROM (SELECT * FROM near ORDER BY order_place DESC OFFSET 0) AS sought
        WHERE (SELECT {MESSAGES.vector} @@ %(query)s::tsquery FROM messages WHERE ctid = sought.row)
        ORDER BY order_place DESC LIMIT %(messages)s
    )
"""
_OTHERS = """
    {name} AS MATERIALIZED (
        SELECT {id} AS id, {place} AS order_place, {rank} AS rank, ctid AS row
        FROM {table} WHERE {where} AND {within} AND {answering}
    )
"""
# Once there are as many messages as may be given, only what is newer can still come before the last of them.
_NOT_BEFORE_MESSAGES = """
    {place} >= (SELECT CASE WHEN count(*) < %(messages)s THEN 0 ELSE min(order_place) END FROM said)
"""
# Where a summary stands among several conversations has to be looked up: until there are enough messages, none is
# fetched for that.
_ENOUGH_MESSAGES = "(SELECT count(*) >= %(messages)s FROM said)"
_NEWEST_FIRST = "ORDER BY order_place DESC, rank DESC, id{collated} DESC LIMIT %(limit)s"
_SAID = "SELECT {number}, id::text, order_place, {rank} AS rank, {held} FROM said"
# What is shown is read of no more than is given.
_NEWEST = f"""
    newest AS MATERIALIZED (
        SELECT * FROM (
            SELECT NULL AS id, order_place, {MESSAGE_RANK} AS rank, row FROM said
            UNION ALL
            SELECT id, order_place, rank, row FROM told
        ) AS found {_NEWEST_FIRST.format(collated=collated(SUMMARIES))}
    )
"""
_SHOWN_OF_MESSAGES = shown_of(MESSAGES.kind, "said")
_SHOWN = " UNION ALL ".join(
    (
        shown_of(MESSAGES.kind, f"newest WHERE rank = {MESSAGE_RANK}"),
        shown_of(SUMMARIES.kind, f"newest WHERE rank < {MESSAGE_RANK}"),
    )
)
_NEWEST_OTHERS = f"(SELECT {{number}}, id, order_place, rank, {{held}} FROM {{name}} {_NEWEST_FIRST})"
_HELD = """(
    SELECT tsvector_to_array(ts_filter(setweight({vector}, 'A', %(lexemes)s::text[]), '{{a}}'))
    FROM {table} WHERE ctid = {name}.row
)"""
_NAMES = {MESSAGES: "said", SUMMARIES: "told", FILES: "kept"}


@dataclass(frozen=True)
class Asked:
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

    def showing(self, tables: Sequence[Table]) -> str:
        """The same for what is shown of messages, and of summaries, as rows of `matches.shown_of`."""
        if SUMMARIES not in tables:
            return f"WITH {self.steps} {_SHOWN_OF_MESSAGES}"
        return f"WITH {self.steps}, {_NEWEST} {_SHOWN}"


@dataclass(frozen=True)
class Statements:
    """Statements for what is within reach and behind the key, for so many things of each kind."""

    reach: Reach
    key: Key | None
    limit: int

    def of(
        self,
        how: Plan,
        looks: Sequence[Stretch],
        *,
        is_any: bool,
        number: int = 0,
        messages: int | None = None,
        is_near: bool = False,
    ) -> Asked:
        """The statement that looks a plan up in these stretches, as the one of this number among several.

        Of each kind as many as may be given, or as are still wanted of the messages; of all these, the newest are.
        `is_near`: there is more than what stands in the stretch. In one conversation it gives that, of whatever kind;
        among several, unless it has enough messages, those alone.
        """
        reach = self.reach
        steps: list[str] = []
        answers: list[str] = []
        messages = messages or self.limit
        values: dict[str, Any] = {"limit": messages if reach.is_one_conversation else self.limit, "messages": messages}
        values["lexemes"] = list(how.lexemes)
        for table in reach.tables:
            name = _NAMES[table]
            held = _HELD.format(vector=table.vector, table=table.name, name=name) if is_any else "NULL::text[]"
            if table is MESSAGES:
                steps.append(self._messages(how, looks, values))
                answers.append(_SAID.format(number=number, rank=MESSAGE_RANK, held=held))
            else:
                is_walk = is_near and looks[0].walks
                alone = how.by_words_alone and not is_walk
                condition, of_key = within(reach, table, self.key, None)
                bounds = self._bounds(table, looks[0], is_near=is_near)
                condition = " AND ".join([condition, *(f"({each}) IS TRUE" if alone else each for each in bounds)])
                among = "in_conversation" if alone and how.in_conversation else None
                if alone and is_near and looks[0].by_place:
                    among = "in_told"
                    upto = looks[0].upto if self._is_behind_others(looks[0]) else reach.newest
                    values[among] = reach.between(looks[0].after, upto)
                # A few summaries stand behind a place that is near, and nobody foresees how few.
                answering = (
                    _CHECKED.format(vector=table.vector) if is_walk else reach.answering(table, how, among=among)
                )
                steps.append(self._written(_OTHERS, table, condition, answering, alone, name=name, rank=table.rank))
                answers.append(_NEWEST_OTHERS.format(number=number, name=name, held=held, collated=collated(table)))
                values |= of_key
        return Asked(
            ", ".join(steps),
            " UNION ALL ".join(answers),
            {**reach.values, **values, **how.asked, "query": how.query},
            self._is_plain(how, looks, is_near=is_near),
            is_any,
        )

    def _bounds(self, table: Table, first: Stretch, *, is_near: bool) -> list[str]:
        """The conditions for what is given beside messages."""
        reach, place = self.reach, self.reach.place(table)
        newer = [_NOT_BEFORE_MESSAGES.format(place=place)] if MESSAGES in reach.tables else []
        if not reach.is_one_conversation:
            return [*newer, *([_ENOUGH_MESSAGES] if is_near else [])]
        return [
            *newer,
            *([f"{place} > %(near_after)s"] if is_near else []),
            *([f"{place} <= %(near_upto)s"] if self._is_behind_others(first) else []),
        ]

    def _is_behind_others(self, stretch: Stretch) -> bool:
        """Whether what is newer was given before."""
        return stretch.upto < high_before(self.reach, self.key)

    def _is_plain(self, how: Plan, looks: Sequence[Stretch], *, is_near: bool) -> bool:
        """Whether only one index leads to what is asked for; to summaries, unless they are near, that for words."""
        walks = is_near or self.reach.tables == (MESSAGES,)
        is_by_one_index = all((each.walks and walks) or each.by_words_alone for each in looks)
        return is_by_one_index and self.reach.is_all_said_in_one_conversation and how.index.is_settled

    def _messages(self, how: Plan, looks: Sequence[Stretch], values: dict[str, Any]) -> str:
        """The steps that lead to messages."""
        found = {}
        asks_later = len(looks) == 1 and not looks[0].walks and not how.asks_for_all
        for name, each in zip(("near", "far"), looks, strict=False):
            condition = self._between(name, each, values)
            among = "in_conversation" if each.by_words_alone and how.in_conversation else None
            if each.by_place:
                among = f"in_{name}"
                values[among] = self.reach.between(each.after, each.upto)
            if each.walks:
                statement, answering = _WALKING, _CHECKED.format(vector=MESSAGES.vector)
            else:
                answers = self.reach.sought if asks_later else self.reach.answering
                statement, answering = _COLLECTED, answers(MESSAGES, how, among=among)
            found[name] = self._written(statement, MESSAGES, condition, answering, each.by_words_alone)
        return (_MESSAGES if "far" in found else _ASKED_MESSAGES if asks_later else _ALL_MESSAGES).format(**found)

    def _between(self, name: str, stretch: Stretch, values: dict[str, Any]) -> str:
        place = self.reach.place(MESSAGES)
        values |= {f"{name}_after": bigint(stretch.after), f"{name}_upto": bigint(stretch.upto)}
        # What is true of every message there is not asked: the index for words is not to be left for it.
        conditions = [f"{place} > %({name}_after)s"] if stretch.after > 0 else []
        conditions += [f"{place} <= %({name}_upto)s"] if stretch.upto < self.reach.newest else []
        if stretch.by_words_alone:
            # As they are written, no other index serves them.
            conditions = [f"({each}) IS TRUE" for each in conditions]
        return " AND ".join(conditions) or "true"

    def _written(self, statement: str, table: Table, condition: str, answering: str, alone: bool, **names: Any) -> str:
        return statement.format(
            id=table.id,
            table=table.name,
            place=self.reach.place(table),
            where=self.reach.where(table, by_words_alone=alone),
            within=condition,
            answering=answering,
            **names,
        )
