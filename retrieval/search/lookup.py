"""What full text search asks the database: the rows that hold what is looked for, and those beside them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress, count, takewhile
from typing import Any

from conversations.sql import array, bound, rows, rows_as_planned
from retrieval.search.filters import Reach
from retrieval.search.query.compiled_query import Plan
from retrieval.search.query.parser import Question
from retrieval.search.relevance import ranking
from retrieval.search.relevance.ranked_rows import MOST_ROWS, BestRows
from retrieval.search.relevance.ranking import Hit, Neighbour, Place, conversation_of, seq_of
from retrieval.search.searchables import MESSAGES, Table
from retrieval.search.trying import one_after_the_other

_NEIGHBOURS = """
    SELECT message_id, conversation_id, seq, {created_at}, author, {tells_when}
    FROM unnest(%(conversations)s::bigint[], %(seqs)s::bigint[]) AS near(conversation_id, seq)
         JOIN messages USING (conversation_id, seq)
    WHERE {where}
"""
# Whether a message tells a time, by the lexemes of such words. A long text has one of them by chance.
_TELLS_WHEN = """(octet_length(content) < 2000 AND content_tsv @@ '
    ago | yesterday | today | tonight | tomorrow | last | next | night | morn | week | weekend | month | year
    | monday | tuesday | wednesday | thursday | friday | saturday | sunday
    | januari | februari | march | april | june | juli | august | septemb | octob | novemb | decemb
    '::tsquery) IS TRUE"""


@dataclass(frozen=True)
class Try:
    """One way to look a question up; if it gives fewer hits than `enough`, there may be another."""

    question: Question
    how: Plan
    enough: int

    @property
    def is_in_context(self) -> bool:
        """Whether messages are ranked with what stands beside them; then length costs, too."""
        return not self.question.is_look_up


@dataclass(frozen=True)
class Looked:
    """The best hits of a table by themselves, and how rare each lexeme is.

    `present`: what the hits hold of what is looked for. `is_cut`: there are more hits than these. `is_bounded`: there
    were too many to look at.
    """

    hits: tuple[Hit, ...]
    rarity: tuple[float, ...]
    present: frozenset[int] = frozenset()
    is_cut: bool = False
    is_bounded: bool = False


@dataclass(frozen=True)
class Lookup:
    """The rows within reach: of those that are ranked in context, `most` by their own words, of others `most_alone`.

    `dated`: of messages the date is told.
    """

    reach: Reach
    most: int
    most_alone: int
    dated: bool

    def tried(self, tries: Sequence[Try]) -> list[tuple[Looked, ...]]:
        """What each try came to, table by table, up to the first that gave enough: in three statements at most."""
        looked: list[tuple[Looked, ...]] = []
        for at_once in self._at_once(tries):
            looked += self._looked(at_once)
            vain = list(takewhile(lambda each: not _is_enough(*each), zip(looked, tries, strict=False)))
            if len(vain) < len(looked):
                break
        return looked[: len(vain) + 1]

    def _at_once(self, tries: Sequence[Try]) -> Iterator[Sequence[Try]]:
        """The first way by itself, the others together: to plan them takes longest, so a plain second comes before."""
        alone = 2 if len(tries) > 1 and self._is_plain(tries[1].how) else 1
        yield from ([each] for each in tries[:alone])
        if len(tries) > alone:
            yield tries[alone:]

    def _looked(self, tries: Sequence[Try]) -> list[tuple[Looked, ...]]:
        asked = [self._asked(number, each) for number, each in enumerate(tries)]
        if len(tries) == 1 and self._is_plain(tries[0].how):
            given = rows(*asked[0], binary=True)
        else:
            # Planned for these values: how often the words occur decides the plan.
            texts = [bound(*each) for each in asked]
            given = rows_as_planned(one_after_the_other(texts, [each.enough for each in tries]), binary=True)
        found: dict[tuple[int, int], list[tuple[Any, ...]]] = defaultdict(list)
        for row in given:
            found[row[0], row[1]].append(row)
        return [
            tuple(self._of(found[number, kind], each) for kind in range(len(self.reach.tables)))
            for number, each in enumerate(tries)
        ]

    def _is_plain(self, how: Plan) -> bool:
        """Whether only the index for words leads to what is asked for, whatever the words are."""
        is_by_words = how.by_words_alone if how.newest >= 1 else how.tells_place
        return is_by_words and self.reach.is_all_said_in_one_conversation and how.index.is_settled

    def _asked(self, number: int, tried: Try) -> tuple[str, dict[str, Any]]:
        """The best rows of each table, and the values of this question."""
        best = BestRows(self.reach, tried.how, by_length=tried.is_in_context, dated=self.dated)
        each = (
            best.statement(table, number=number, kind=kind, most=self._most(table, tried))
            for kind, table in enumerate(self.reach.tables)
        )
        return " UNION ALL ".join(f"({of_table})" for of_table in each), best.values()

    def _most(self, table: Table, tried: Try) -> int:
        return self.most if table is MESSAGES and tried.is_in_context else self.most_alone

    def _of(self, fetched: Sequence[tuple[Any, ...]], tried: Try) -> Looked:
        if not fetched:
            return Looked((), (ranking.rarity(found=0, among=self.reach.rows),) * len(tried.how.terms))
        hits, present = _hits(fetched, tried.how)
        looked_at, *rarity = fetched[0][-1]
        return Looked(hits, tuple(rarity), present, looked_at > len(hits), looked_at >= MOST_ROWS)

    def neighbours(self, places: Collection[Place], *, asks_when: bool) -> list[Neighbour]:
        """The messages at these places, if they are within reach; some places are beyond a conversation's end.

        If it `asks_when`, of each whether it tells a time.
        """
        if not places:
            return []
        reach = self.reach
        statement = _NEIGHBOURS.format(
            where=reach.where(MESSAGES) if reach.is_narrowed else "true",
            # Thousands of dates take a while to read.
            created_at="created_at" if self.dated else "NULL::timestamptz",
            tells_when=_TELLS_WHEN if asks_when else "false",
        )
        near = {"conversations": array(map(conversation_of, places)), "seqs": array(map(seq_of, places))}
        values = {**reach.values, **near} if reach.is_narrowed else near
        return [Neighbour(*row) for row in rows(statement, values, binary=True)]


def _is_enough(looked: Sequence[Looked], tried: Try) -> bool:
    return sum(len(each.hits) for each in looked) >= tried.enough


def _hits(fetched: Sequence[tuple[Any, ...]], how: Plan) -> tuple[tuple[Hit, ...], frozenset[int]]:
    """The hits, and all that they hold."""
    # Hundreds of rows hold the same few combinations of words.
    answering: dict[tuple[bool, ...], bool] = {}
    hits, new = [], tuple.__new__
    for _, _, name, place, shares, tokens, answered_in, order_place, author, created_at, _ in fetched:
        held = tuple(map(bool, shares))
        if held not in answering:
            answering[held] = how.is_answered_by(tuple(_terms(held)))
        is_complete = answering[held]
        hits.append(new(Hit, (name, place, shares, tokens, answered_in, is_complete, order_place, author, created_at)))
    return tuple(hits), frozenset(chain.from_iterable(map(_terms, answering)))


def _terms(held: Sequence[bool]) -> Iterator[int]:
    """Which terms are held."""
    return compress(count(), held)
