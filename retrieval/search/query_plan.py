"""How a question is looked up: which lexemes find its candidates, and which only help to rank them. Pure.

A row needs to hold at least one *anchor* to be looked at. Rare lexemes find few rows; the most common ones find half of
a conversation and tell nothing, so they are anchors only where nothing rarer is asked for, and then only in the newest
rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from retrieval.search.query import UNSPACED, Term

MOST_LEXEMES = 32
MOST_CANDIDATES = 1000
MOST_PAIRS = 6

# PostgreSQL's own guess for a word that it has no count of; mostly far too high.
_UNCOUNTED = 0.005
# The index for words gives rows of all conversations. To fetch one of them takes about as long as to pass so many
# entries of the index that tells which rows are of one conversation.
_ENTRIES_A_ROW = 40
# To fetch a row and to check its words takes about as long as to pass so many entries of the index for words.
_ENTRIES_A_CHECK = 800
# A word in fewer texts than this leaves out so many that the index is asked for it in any case.
_EVERYWHERE = 0.2


@dataclass(frozen=True)
class Meaning:
    """What a term comes to in the index: its lexemes, those of its parts if it is compound, and the query for it.

    `unasked`: lexemes that only the rows are asked for, which the others have led to.
    """

    term: Term
    whole: tuple[str, ...]
    parts: tuple[str, ...]
    query: str
    unasked: frozenset[str] = frozenset()

    @property
    def lexemes(self) -> tuple[str, ...]:
        return self.whole + tuple(part for part in self.parts if part not in self.whole)

    def is_held(self, lexemes: Collection[str]) -> bool:
        """Whether a text with these of the lexemes has the term, as it stands or by all its parts."""
        return any(all(each in lexemes for each in way) for way in self.ways)

    @property
    def as_query(self) -> str:
        """The tsquery that a text with the term answers."""
        return self.query or _any_of(self.ways)

    @property
    def as_sought(self) -> str:
        """The tsquery for the index, which may give more."""
        asked = ([lexeme for lexeme in way if lexeme not in self.unasked] or way for way in self.ways)
        return self.query or _any_of(asked)

    @property
    def ways(self) -> tuple[tuple[str, ...], ...]:
        """Either has all of the term."""
        return tuple(way for way in (self.whole, self.parts) if way)


def meaning(term: Term, *, whole: Sequence[str], parts: Sequence[str], query: str) -> Meaning:
    """The term with its lexemes; of a script without spaces, the pairs stand for the characters they are made of."""
    if any(len(lexeme) > 1 and UNSPACED.match(lexeme) for lexeme in whole):
        whole = [lexeme for lexeme in whole if len(lexeme) > 1 or not UNSPACED.match(lexeme)]
    return Meaning(term, tuple(whole), tuple(parts), query)


def _any_of(ways: Iterable[Sequence[str]]) -> str:
    return " | ".join(f"({' & '.join(map(lexeme_query, way))})" for way in ways)


def lexeme_query(lexeme: str) -> str:
    """The tsquery of one lexeme. A single character of a script without spaces is sought as the first of a pair."""
    quoted = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*" if len(lexeme) == 1 and UNSPACED.match(lexeme) else f"'{quoted}'"


@dataclass(frozen=True)
class Plan:
    """The lexemes to rank by, which of them are anchors, how many rows each is expected in, and what to leave out.

    `newest`: the share of the rows that is looked at, from the newest on.
    """

    clauses: tuple[tuple[Meaning, ...], ...]
    lexemes: tuple[str, ...]
    anchors: tuple[str, ...]
    expected: Mapping[str, float]
    pairs: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    newest: float = 1.0
    wants_every_clause: bool = False
    # One word was asked for, and so only texts that hold it answer.
    is_one_word: bool = False
    # Whether the index for words had better be the only one that is looked into.
    by_words_alone: bool = False
    # The same where every clause is wanted.
    by_all_words_alone: bool = False

    @property
    def is_bounded(self) -> bool:
        """Whether rows that hold some of the words are not looked at."""
        return not self.wants_every_clause and (len(self.anchors) < len(self.lexemes) or self.newest < 1)

    @property
    def takes_neighbours(self) -> bool:
        """Whether a message beside a hit may be an answer: it need not hold what every answer must."""
        return not (self.required or self.excluded or self.wants_every_clause or self.is_one_word)

    @property
    def query(self) -> str:
        """The tsquery that every candidate answers."""
        if self.wants_every_clause:
            conditions = [" | ".join(f"({each.as_query})" for each in clause) for clause in self.clauses]
        else:
            conditions = [" | ".join(map(lexeme_query, self.anchors)), *self.required]
        return self._all_of(conditions)

    @property
    def sought(self) -> str:
        """The tsquery for the index, which may give more rows than answer the query."""
        if not self.wants_every_clause:
            return self.query
        return self._all_of(" | ".join(f"({each.as_sought})" for each in clause) for clause in self.clauses)

    def _all_of(self, conditions: Iterable[str]) -> str:
        return " & ".join([f"({condition})" for condition in conditions] + [f"!({each})" for each in self.excluded])

    def for_every_clause(self) -> Plan:
        """The same for texts that answer all of the question, which are few enough to look at wherever they are."""
        return replace(self, wants_every_clause=True, newest=1.0, by_words_alone=self.by_all_words_alone)

    def for_any_lexeme(self) -> Plan:
        """The same for texts that hold any of the lexemes, however common: of those, the newest."""
        total = sum(self.expected.get(lexeme, 0.0) for lexeme in self.lexemes)
        return replace(self, anchors=self.lexemes, newest=min(1.0, MOST_CANDIDATES / total) if total else 1.0)

    def expected_matches(self) -> float:
        """In about how many rows everything that the query asks for may be found; at most, as words come together."""
        if not self.wants_every_clause:
            return sum(self.expected.get(lexeme, 0.0) for lexeme in self.anchors)
        of_clauses = [
            sum(min((self.expected.get(each, 0.0) for each in term.whole), default=0.0) for term in clause)
            for clause in self.clauses
        ]
        return min(of_clauses, default=0.0)

    def expected_of(self, place: int) -> float:
        """In how many rows at least the lexeme or pair at this place is to be expected.

        Of an anchor nothing needs to be expected: all the rows that hold it are looked at, and are counted.
        """
        if place >= len(self.lexemes):
            return 0.0
        is_counted = self.lexemes[place] in self.anchors and self.newest == 1 and not self.wants_every_clause
        return 0.0 if is_counted else self.expected.get(self.lexemes[place], 0.0)

    def is_answered_by(self, places: Collection[int]) -> bool:
        """Whether a text with the lexemes at these places answers every clause; of phrases, by their words."""
        held = {self.lexemes[place] for place in places if place < len(self.lexemes)}
        return self.wants_every_clause or all(any(each.is_held(held) for each in clause) for clause in self.clauses)


def plan(
    clauses: Sequence[Sequence[Meaning]],
    excluded: Sequence[Meaning],
    *,
    frequencies: Mapping[str, float],
    rows: int,
    everywhere: float = -1,
    in_pairs: bool = False,
) -> Plan | None:
    """How to look the clauses up in so many rows; None if nothing in them can be looked up.

    `frequencies`: the share of rows that hold a lexeme, for those that the statistics know; any other is rare.
    `everywhere`: how many rows there are in all, as far as that is known; the index for words covers them all. With
    `in_pairs`, words that follow each other in the question count once more where they do so in a text.
    """
    wanted = dict.fromkeys(lexeme for clause in clauses for each in clause for lexeme in each.lexemes)
    if not wanted:
        return None
    expected = {lexeme: frequencies.get(lexeme, 0.0) * rows for lexeme in wanted}
    # Sorting is stable: of equally rare ones, those that the question names first.
    rarest = sorted(wanted, key=expected.__getitem__)[:MOST_LEXEMES]
    index = _Index(frequencies, everywhere)
    clauses = [[index.asked_for(each) for each in clause] for clause in clauses]
    anchors: list[str] = []
    total = 0.0
    for lexeme in rarest:
        if anchors and total + expected[lexeme] > MOST_CANDIDATES:
            break
        total += expected[lexeme]
        anchors.append(lexeme)
    return Plan(
        clauses=tuple(map(tuple, clauses)),
        lexemes=tuple(rarest),
        anchors=tuple(anchors),
        expected=expected,
        pairs=_pairs(clauses) if in_pairs else (),
        required=tuple(
            " | ".join(f"({each.as_query})" for each in clause)
            for clause in clauses
            if any(each.term.is_phrase for each in clause)
        ),
        excluded=tuple(each.query for each in excluded if each.query),
        newest=min(1.0, MOST_CANDIDATES / total) if total else 1.0,
        by_words_alone=index.is_enough(sum(map(index.share, anchors)), rows=rows),
        by_all_words_alone=index.is_enough(_together(map(index.share_of_clause, clauses)), rows=rows),
    )


@dataclass(frozen=True)
class _Index:
    """The index for words, as far as its statistics tell: shares of all the rows that it covers."""

    frequencies: Mapping[str, float]
    everywhere: float

    def share(self, lexeme: str) -> float:
        return self.frequencies.get(lexeme, _UNCOUNTED)

    def share_of_clause(self, clause: Sequence[Meaning]) -> float:
        # A text that has a compound as it stands mostly has its parts, too.
        return sum(max((_together(map(self.share, way)) for way in each.ways), default=0.0) for each in clause)

    def asked_for(self, term: Meaning) -> Meaning:
        """The term, with those of its lexemes unasked that are nearly everywhere and would be long to pass through."""
        unasked: set[str] = set()
        for way in term.ways:
            common = [each for each in way if self.share(each) >= _EVERYWHERE]
            checks = _together(self.share(each) for each in way if each not in common)
            if len(common) < len(way) and checks * _ENTRIES_A_CHECK < sum(map(self.share, common)):
                unasked.update(common)
        return replace(term, unasked=frozenset(unasked))

    def is_enough(self, share: float, *, rows: int) -> bool:
        """Whether the rows of others that hold such a share take less time than to list all that are within reach.

        The planner thinks otherwise, for it takes every row for one that has to come from a disk.
        """
        of_others = share * self.everywhere * (1 - min(1.0, rows / max(1.0, self.everywhere)))
        return self.everywhere >= 0 and of_others * _ENTRIES_A_ROW < rows


def _together(shares: Iterable[float]) -> float:
    """Which share of the rows holds all of these at once.

    Words come together more often than by chance, so each further one counts by its root, and the root of that.
    """
    share = 1.0
    for place, each in enumerate(sorted(shares)):
        share *= each ** (0.5**place)
    return share


def _pairs(clauses: Sequence[Sequence[Meaning]]) -> tuple[str, ...]:
    """The tsqueries of two plain words that follow each other."""
    words = [clause[0].whole if len(clause) == 1 and len(clause[0].whole) == 1 else () for clause in clauses]
    following = [(a[0], b[0]) for a, b in zip(words, words[1:], strict=False) if a and b and a != b]
    return tuple(f"{lexeme_query(a)} <-> {lexeme_query(b)}" for a, b in dict.fromkeys(following))[:MOST_PAIRS]
