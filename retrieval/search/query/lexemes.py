"""What a term of a question comes to in the index for words: its lexemes, and the queries for them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from retrieval.search.query.parser import UNSPACED, Term
from retrieval.search.word_index import WordIndex


@dataclass(frozen=True)
class Meaning:
    """What a term comes to in the index: its lexemes, those of its parts if it is compound, and the query for it.

    `unasked`: lexemes that only the rows are asked for, which the others have led to. `forms`: of a plain word, lexemes
    that are the same word. `in_a_row`: of a compound, the query for it as it stands or by its parts in their order.
    """

    term: Term
    whole: tuple[str, ...]
    parts: tuple[str, ...]
    query: str
    unasked: frozenset[str] = frozenset()
    forms: tuple[str, ...] = ()
    in_a_row: str = ""

    @property
    def lexemes(self) -> tuple[str, ...]:
        return self.whole + tuple(part for part in self.parts if part not in self.whole)

    def asked_of(self, index: WordIndex) -> Meaning:
        """The same with what the index is better not asked for."""
        unasked: frozenset[str] = frozenset().union(*map(index.unasked, self.ways))
        return replace(self, unasked=unasked) if unasked else self

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
        return self.query or _any_of(map(self._asked_of_way, self.ways))

    @property
    def conditions(self) -> tuple[str, ...]:
        """The same as several that hold at once: a text has the term as it stands, or this part and that."""
        if self.query or not self.whole or not self.parts:
            return (f"({self.as_sought})",)
        whole, parts = map(self._asked_of_way, self.ways)
        return tuple(f"{_any_of([whole])} | {lexeme_query(part)}" for part in parts)

    def _asked_of_way(self, way: Sequence[str]) -> Sequence[str]:
        return [lexeme for lexeme in way if lexeme not in self.unasked] or way

    @property
    def ways(self) -> tuple[tuple[str, ...], ...]:
        """Either has all of the term."""
        return tuple(way for way in (self.whole, self.parts) if way)


def meaning(
    term: Term,
    *,
    whole: Sequence[str],
    parts: Sequence[str],
    query: str,
    forms: Sequence[str] = (),
    in_a_row: str = "",
) -> Meaning:
    """The term with its lexemes; of a script without spaces, the pairs stand for the characters they are made of."""
    if any(len(lexeme) > 1 and UNSPACED.match(lexeme) for lexeme in whole):
        whole = [lexeme for lexeme in whole if len(lexeme) > 1 or not UNSPACED.match(lexeme)]
    is_plain = len(whole) == 1 and not parts and not query
    others = tuple(form for form in forms if form not in whole) if is_plain else ()
    return Meaning(term, tuple(whole), tuple(parts), query, forms=others, in_a_row=in_a_row)


def _any_of(ways: Iterable[Sequence[str]]) -> str:
    return " | ".join(f"({' & '.join(map(lexeme_query, way))})" for way in ways)


def lexeme_query(lexeme: str) -> str:
    """The tsquery of one lexeme. A single character of a script without spaces is sought as the first of a pair."""
    quoted = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*" if len(lexeme) == 1 and UNSPACED.match(lexeme) else f"'{quoted}'"
