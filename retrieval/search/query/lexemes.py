"""The lexemes of a query's terms, as the word index has them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from retrieval.search.query.parser import UNSPACED, Term

# A term, and whether it is excluded.
TermKey = tuple[Term, bool]


@dataclass(frozen=True)
class LexedTerm:
    """A term as the index has it: its lexemes, those of its parts if it is compound, and the tsquery of a phrase.

    `forms`: of a plain word, lexemes that are the same word. `in_a_row`: the tsquery for a compound as it stands, or by
    its parts in their order.
    """

    term: Term
    whole: tuple[str, ...]
    parts: tuple[str, ...]
    query: str
    forms: tuple[str, ...] = ()
    in_a_row: str = ""

    @property
    def lexemes(self) -> tuple[str, ...]:
        return self.whole + tuple(part for part in self.parts if part not in self.whole)

    def is_held(self, lexemes: Collection[str]) -> bool:
        """Whether a text with these of the lexemes has the term, as it stands or by all its parts."""
        return any(all(each in lexemes for each in way) for way in self._ways)

    @property
    def as_query(self) -> str:
        """The tsquery that a text with the term matches."""
        return self.query or _any_of(self._ways)

    @property
    def conditions(self) -> tuple[str, ...]:
        """The same as several tsqueries that all hold: a text has the term as it stands, or this part and that."""
        if self.query or not self.whole or not self.parts:
            return (f"({self.as_query})",)
        return tuple(f"{_any_of([self.whole])} | {lexeme_query(part)}" for part in self.parts)

    @property
    def _ways(self) -> tuple[tuple[str, ...], ...]:
        """Either has all of the term."""
        return tuple(way for way in (self.whole, self.parts) if way)


def lexed_term(
    term: Term,
    *,
    whole: Sequence[str],
    parts: Sequence[str],
    query: str,
    forms: Sequence[str] = (),
    in_a_row: str = "",
) -> LexedTerm:
    """The term with its lexemes; in a script without spaces, the pairs stand for the characters they are made of."""
    if any(len(lexeme) > 1 and UNSPACED.match(lexeme) for lexeme in whole):
        whole = [lexeme for lexeme in whole if len(lexeme) > 1 or not UNSPACED.match(lexeme)]
    is_plain = len(whole) == 1 and not parts and not query
    others = tuple(form for form in forms if form not in whole) if is_plain else ()
    return LexedTerm(term, tuple(whole), tuple(parts), query, forms=others, in_a_row=in_a_row)


def _any_of(ways: Iterable[Sequence[str]]) -> str:
    return " | ".join(f"({' & '.join(map(lexeme_query, way))})" for way in ways)


def lexeme_query(lexeme: str) -> str:
    """The tsquery of one lexeme; a single character of a script without spaces matches as the first of a pair."""
    quoted = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*" if len(lexeme) == 1 and UNSPACED.match(lexeme) else f"'{quoted}'"
