"""The newest texts with the words of a question: first where they are near, mostly enough; then all the others.

Messages and summaries that one index alone leads to are shown by the statement that finds them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conversations.sql import bound, rows, rows_as_planned
from retrieval.search.filters import Reach
from retrieval.search.first_look import Stretch, farther, stretches
from retrieval.search.matches import Row, depth_of
from retrieval.search.meanings import Meanings
from retrieval.search.newest_statement import Asked, Statements
from retrieval.search.ordering import Key, Spot, high_before, ordered
from retrieval.search.query.compiled_query import Plan
from retrieval.search.query.parser import Question
from retrieval.search.relevance import ranking
from retrieval.search.searchables import FILES, MESSAGE_RANK, MESSAGES
from retrieval.search.trying import one_after_the_other


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

        In four statements at most: either way takes two if nothing answers, and three only if something does.
        """
        tries = (each for each in self._tries(readings) if reading is None or each.reading == reading)
        first = next(tries, None)
        if first is None:
            return None
        [found] = self._spots([first], key)
        if found:
            return self._found(found[: self.limit], first)
        others = list(tries)
        # Of one lexeme, every text with any of them was sought.
        if others and len(first.how.lexemes) > 1:
            for found, each in zip(self._spots(others, key), others, strict=False):
                if found:
                    return self._found(found[: self.limit], each)
        return self._found((), [first, *others][-1])

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
        statements = Statements(self.reach, key, self.limit)
        if len(tries) == 1 and self.reach.tables[0] is MESSAGES and FILES not in self.reach.tables:
            return [self._stretch_by_stretch(tries[0], looks[0], statements)]
        given = self._given(
            [
                statements.of(each.chosen, looks[number], is_any=each.is_any, number=number)
                for number, each in enumerate(tries)
            ]
        )
        return list(map(ordered, given))

    def _stretch_by_stretch(self, tried: _Try, looks: Sequence[Stretch], statements: Statements) -> list[Spot]:
        """Mostly what is near is enough, and to plan the rest in vain takes as long as to find that."""
        found: list[Spot] = []
        goes_farther = not tried.is_any
        while len(looks) > 1:
            near, rest = looks
            wanted = self.limit - len(found)
            asked = statements.of(tried.chosen, [near], is_any=tried.is_any, messages=wanted, is_near=True)
            given = self._given([asked])[0]
            found += given
            if len(given) >= wanted:
                return ordered(found)
            looks = [rest]
            if goes_farther:
                left = wanted - len(given)
                looks = farther(near, rest, tried.chosen, self.reach, found=len(given), wanted=left)
                goes_farther = False
        asked = statements.of(tried.chosen, looks, is_any=tried.is_any, messages=self.limit - len(found))
        return ordered([*found, *self._given([asked])[0]])

    def _given(self, asked: Sequence[Asked]) -> list[list[Spot]]:
        """What each of these gives, up to the first that gives anything: so many of each kind, in no order."""
        if len(asked) == 1 and asked[0].is_plain and not asked[0].is_any:
            shown = rows(asked[0].showing(self.reach.tables), asked[0].values, binary=True)
            return [list(map(_spot_of, shown))]
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
        return spots


def _spot_of(row: Row) -> Spot:
    """Where the message or summary stands of which this is shown."""
    depth = depth_of(row)
    return Spot(int(row[0]), row[3], MESSAGE_RANK, row=row) if depth is None else Spot(row[0], row[3], depth, row=row)
