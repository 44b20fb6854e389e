"""How a question is looked up: which lexemes find its candidates, and which only help to rank them. Pure.

A row needs to hold at least one *anchor* to be looked at. Rare lexemes find few rows; the most common ones find half of
a conversation and tell nothing, so they are anchors only where nothing rarer is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrieval.query import UNSPACED, Term

MOST_LEXEMES = 32
MOST_CANDIDATES = 4000
MOST_PAIRS = 6


@dataclass(frozen=True)
class Meaning:
    """What a term comes to in the index: its lexemes, those of its parts if it is compound, and the query for it."""

    term: Term
    whole: tuple[str, ...]
    parts: tuple[str, ...]
    query: str

    @property
    def lexemes(self) -> tuple[str, ...]:
        return self.whole + tuple(part for part in self.parts if part not in self.whole)

    def is_held(self, lexemes: frozenset[str]) -> bool:
        """Whether a text with these of the lexemes has the term, as it stands or by all its parts."""
        return (bool(self.whole) and lexemes.issuperset(self.whole)) or (
            bool(self.parts) and lexemes.issuperset(self.parts)
        )


def answers_all(clauses: Sequence[Sequence[Meaning]], lexemes: frozenset[str]) -> bool:
    """Whether a text with these of the lexemes has a term of every clause."""
    return all(any(each.is_held(lexemes) for each in clause) for clause in clauses)


def meaning(term: Term, *, whole: Sequence[str], parts: Sequence[str], query: str) -> Meaning:
    """The term with its lexemes; of a script without spaces, the pairs stand for the characters they are made of."""
    if any(len(lexeme) > 1 and UNSPACED.match(lexeme) for lexeme in whole):
        whole = [lexeme for lexeme in whole if len(lexeme) > 1 or not UNSPACED.match(lexeme)]
    return Meaning(term, tuple(whole), tuple(parts), query)


def lexeme_query(lexeme: str) -> str:
    """The tsquery of one lexeme. A single character of a script without spaces is sought as the first of a pair."""
    quoted = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*" if len(lexeme) == 1 and UNSPACED.match(lexeme) else f"'{quoted}'"


@dataclass(frozen=True)
class Plan:
    """The lexemes to rank by, which of them are anchors, how many rows each is expected in, and what to leave out."""

    lexemes: tuple[str, ...]
    anchors: tuple[str, ...]
    expected: Mapping[str, float]
    pairs: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    @property
    def is_bounded(self) -> bool:
        return len(self.anchors) < len(self.lexemes)

    @property
    def expects(self) -> float:
        """How many rows will have to be looked at."""
        return sum(self.expected.get(anchor, 0.0) for anchor in self.anchors)

    @property
    def query(self) -> str:
        """The tsquery that every candidate answers."""
        conditions = [" | ".join(lexeme_query(anchor) for anchor in self.anchors), *self.required]
        return " & ".join([f"({condition})" for condition in conditions] + [f"!({each})" for each in self.excluded])


def plan(
    clauses: Sequence[Sequence[Meaning]],
    excluded: Sequence[Meaning],
    *,
    frequencies: Mapping[str, float],
    rows: int,
    in_pairs: bool = False,
) -> Plan | None:
    """How to look the clauses up in so many rows; None if nothing in them can be looked up.

    `frequencies`: the share of rows that hold a lexeme, for those that the statistics know; any other is rare. With
    `in_pairs`, words that follow each other in the question count once more where they do so in a text.
    """
    wanted = dict.fromkeys(lexeme for clause in clauses for each in clause for lexeme in each.lexemes)
    if not wanted:
        return None
    expected = {lexeme: frequencies.get(lexeme, 0.0) * rows for lexeme in wanted}
    # Sorting is stable: of equally rare ones, those that the question names first.
    rarest = sorted(wanted, key=expected.__getitem__)[:MOST_LEXEMES]
    anchors: list[str] = []
    total = 0.0
    for lexeme in rarest:
        total += expected[lexeme]
        if anchors and total > MOST_CANDIDATES:
            break
        anchors.append(lexeme)
    return Plan(
        lexemes=tuple(rarest),
        anchors=tuple(anchors),
        expected=expected,
        pairs=_pairs(clauses) if in_pairs else (),
        required=tuple(
            " | ".join(f"({each.query})" for each in clause if each.query)
            for clause in clauses
            if any(each.term.is_phrase and each.query for each in clause)
        ),
        excluded=tuple(each.query for each in excluded if each.query),
    )


def _pairs(clauses: Sequence[Sequence[Meaning]]) -> tuple[str, ...]:
    """The tsqueries of two plain words that follow each other."""
    words = [clause[0].whole if len(clause) == 1 and len(clause[0].whole) == 1 else () for clause in clauses]
    following = [(a[0], b[0]) for a, b in zip(words, words[1:], strict=False) if a and b and a != b]
    return tuple(f"{lexeme_query(a)} <-> {lexeme_query(b)}" for a, b in dict.fromkeys(following))[:MOST_PAIRS]
