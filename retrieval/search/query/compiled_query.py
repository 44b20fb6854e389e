"""Compile a query: which lexemes find candidates, and which only rank them.

A row is a candidate only if it has at least one *anchor*. Rare lexemes are anchors: they find few rows. Common lexemes,
which distinguish nothing, are anchors only if the query has no rarer ones, and then they find only the newest rows.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, islice

from retrieval.search.query.parser import UNSPACED, ParsedQuery, Term

MOST_LEXEMES = 32
MOST_CANDIDATES = 1000
MOST_PAIRS = MOST_COMPOUNDS = 6
# The document frequency (share of rows) that PostgreSQL assumes for a lexeme without statistics.
_UNCOUNTED = 0.005
# The weight of the proximity term of a compound: its parts are adjacent. docs/figures.md shows its effect.
_COMPOUND = 1.0
# The same for two adjacent words of a sentence: less than the 1 of a short query, as grammar makes many words adjacent.
_PAIR_OF_A_SENTENCE = 0.2

# The endings of words in which other forms may differ have at most a quarter of the letters, and at most these.
_LONGEST_ENDING, _SHORTEST_BEGINNING, SHORT_HASH = 3, 5, 7

_BEGINS_ALIKE = 0.5

# A term, and whether it is excluded.
TermKey = tuple[Term, bool]


@dataclass(frozen=True)
class LexedTerm:
    """A term in the form of the index: lexemes, parts of a compound, tsquery.

    `forms` has the lexemes of other forms of a plain word. `in_a_row` is the tsquery for a compound as it is written,
    or for its parts in order.
    """

    term: Term
    whole: tuple[str, ...]
    parts: tuple[str, ...]
    query: str
    forms: tuple[str, ...] = ()
    in_a_row: str = ""

    @property
    def beginning(self) -> str | None:
        """The beginning that forms of a plain word share; None if it is short."""
        if len(self.whole) != 1 or self.parts or self.query:
            return None
        [lexeme], letters = self.whole, sum(map(str.isalnum, self.term.text))
        if lexeme.isalpha():
            shared, shortest = letters - min(_LONGEST_ENDING, letters // 4), _SHORTEST_BEGINNING
            if not lexeme.isascii():
                # The stem of another form may lack the last letter or have one before it: `журналы` becomes `журнал`,
                # but `журнал` `журна`; `ошибки` becomes `ошибк`, but `ошибок` `ошибок`.
                shared, shortest = min(shared, len(lexeme) - 1), shortest - 1
            return lexeme[: max(shortest, shared)] if len(lexeme) >= shortest else None
        # A short hash stands for the whole one, but a number is not the beginning of another.
        return lexeme if len(lexeme) >= SHORT_HASH and lexeme.isalnum() and not lexeme.isdigit() else None

    @property
    def lexemes(self) -> tuple[str, ...]:
        return self.whole + tuple(part for part in self.parts if part not in self.whole)

    def is_held(self, lexemes: Collection[str]) -> bool:
        """Whether a text with these lexemes has the term: as a whole, or all its parts."""
        return any(all(each in lexemes for each in way) for way in self._ways)

    @property
    def as_query(self) -> str:
        """The tsquery that a text with the term matches."""
        return self.query or " | ".join(f"({' & '.join(map(lexeme_query, way))})" for way in self._ways)

    @property
    def _ways(self) -> tuple[tuple[str, ...], ...]:
        """The sets of lexemes that are each equivalent to the term."""
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
    """Build a term; in unspaced scripts, use only the lexemes of character pairs."""
    if any(len(lexeme) > 1 and UNSPACED.match(lexeme) for lexeme in whole):
        whole = [lexeme for lexeme in whole if len(lexeme) > 1 or not UNSPACED.match(lexeme)]
    is_plain = len(whole) == 1 and not parts and not query
    others = tuple(form for form in forms if form not in whole) if is_plain else ()
    return LexedTerm(term, tuple(whole), tuple(parts), query, forms=others, in_a_row=in_a_row)


def lexeme_query(lexeme: str) -> str:
    """The tsquery of a lexeme; for a character of an unspaced script, a prefix query."""
    quoted = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{quoted}':*" if len(lexeme) == 1 and UNSPACED.match(lexeme) else f"'{quoted}'"


Clauses = Sequence[Sequence[LexedTerm]]


@dataclass(frozen=True)
class InARow:
    """A proximity term: lexemes that score more in texts where they are adjacent."""

    lexemes: tuple[str, ...]
    query: str
    weight: float


@dataclass(frozen=True)
class CompiledQuery:
    """A query with its lexemes for ranking, anchors, expected rows and exclusions.

    `newest`: the share of rows, the newest ones, that is searched. `clauses` has none that consist only of stop words.
    `expected` and `frequencies`: the estimated number and share of rows with each lexeme.
    """

    parsed: ParsedQuery
    clauses: Clauses
    lexemes: tuple[str, ...]
    anchors: tuple[str, ...]
    expected: Mapping[str, float]
    frequencies: Mapping[str, float]
    # For a lexeme, the lexemes of other forms of the same word, which count as this lexeme.
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # For a lexeme that no text has, a beginning of words that count as this lexeme.
    beginnings: Mapping[str, str] = field(default_factory=dict)
    # Pairs of lexemes that are adjacent in the query.
    pairs: tuple[tuple[str, str], ...] = ()
    # Conditions of phrases, which every match must fulfil.
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    newest: float = 1.0
    rows: int = 0
    wants_every_clause: bool = False
    # Whether a compound is matched as a whole, and not by each of its parts.
    wants_words: bool = False

    @property
    def is_sentence(self) -> bool:
        return self.parsed.is_sentence

    def for_every_clause(self) -> CompiledQuery:
        """Copy the query to match only texts with every clause, in all rows."""
        return replace(self, wants_every_clause=True, newest=1.0)

    def for_any_word(self) -> CompiledQuery | None:
        """Copy the query to match texts with any word; a compound counts as one word.

        Returns None if the query has no compounds, or if they may find more candidates than are ranked.
        """
        expected = self.rows * sum(self._share_of_all(each.parts or each.whole) for each in self._compounds)
        return replace(self, wants_words=True) if self._compounds and expected <= MOST_CANDIDATES else None

    def for_any_lexeme(self) -> CompiledQuery:
        """Copy the query to match the newest texts with any lexeme, also common ones."""
        total = sum(self.expected.get(lexeme, 0.0) for lexeme in self.lexemes)
        return replace(self, anchors=self.lexemes, newest=min(1.0, MOST_CANDIDATES / total) if total else 1.0)

    def for_beginnings(self, present: frozenset[str]) -> CompiledQuery | None:
        """Copy the query: for clauses in no text, it matches words that begin alike."""
        without = [clause for clause in self.clauses if present.isdisjoint(chain(*(each.lexemes for each in clause)))]
        if self.is_sentence and 2 * len(without) < len(self.clauses):
            # The other words of the sentence are enough.
            return None
        absent = (each for clause in without for each in clause)
        beginnings = {each.whole[0]: each.beginning for each in absent if each.beginning}
        return replace(self, beginnings=beginnings, wants_every_clause=False) if beginnings else None

    @property
    def has_common_lexemes(self) -> bool:
        """Whether some lexemes are too common to be anchors."""
        return len(self.anchors) < len(self.lexemes)

    @property
    def is_bounded(self) -> bool:
        """Whether some rows with a word of the query are not candidates."""
        if self.wants_every_clause:
            return False
        return any(lexeme not in self.anchors for lexeme in self._alone) or self.newest < 1

    @property
    def takes_neighbours(self) -> bool:
        """Whether a message next to a hit may match, even without words of the query."""
        is_exact = self.excluded or self.wants_every_clause or self.parsed.is_one_word
        return not (is_exact or (self.required and not self.is_sentence))

    @cached_property
    def query(self) -> str:
        """The tsquery that every candidate matches."""
        if not self.wants_every_clause:
            return self._all_of([self._any_anchor, *self.required])
        return self._all_of([_any_term(clause) for clause in self.clauses])

    @property
    def _any_anchor(self) -> str:
        wholes = (f"({each.as_query})" for each in self._compounds) if self.wants_words else ()
        alone = (lexeme for lexeme in self._alone if lexeme in self.anchors)
        return " | ".join([*wholes, *map(self._in_any_form, alone)])

    @cached_property
    def _alone(self) -> tuple[str, ...]:
        """The lexemes that are each enough for a candidate, if they are anchors."""
        if not self.wants_words:
            return self.lexemes
        plain = {lexeme for clause in self.clauses for each in clause if not each.parts for lexeme in each.whole}
        return tuple(lexeme for lexeme in self.lexemes if lexeme in plain)

    @cached_property
    def _compounds(self) -> tuple[LexedTerm, ...]:
        return tuple(each for clause in self.clauses for each in clause if each.parts)

    def _all_of(self, conditions: Iterable[str]) -> str:
        return " & ".join([f"({condition})" for condition in conditions] + [f"!({each})" for each in self.excluded])

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """The tsqueries for ranking: one for each lexeme, then the proximity terms."""
        return (*map(self._in_any_form, self.lexemes), *(each.query for each in self.in_a_row))

    @cached_property
    def in_a_row(self) -> tuple[InARow, ...]:
        """The proximity terms: compounds and pairs; in a sentence, a word may be between."""
        compounds = {
            each.in_a_row: InARow(
                each.parts, " & ".join([f"({each.in_a_row})", *map(lexeme_query, each.parts)]), _COMPOUND
            )
            for each in self._compounds
            if each.in_a_row and all(part in self.lexemes for part in each.parts)
        }
        near = " | {0} <2> {1}" if self.is_sentence else ""
        weight = _PAIR_OF_A_SENTENCE if self.is_sentence else 1.0
        pairs = (
            InARow(pair, ("{0} <-> {1}" + near).format(*map(self._in_any_form, pair)), weight) for pair in self.pairs
        )
        return (*islice(compounds.values(), MOST_COMPOUNDS), *pairs)

    def found_as(self, lexeme: str) -> tuple[str, ...]:
        """The lexeme and its other forms, or the beginning that counts as the lexeme."""
        if lexeme in self.beginnings:
            return (self.beginnings[lexeme],)
        return (lexeme, *self.forms.get(lexeme, ()))

    def weight_of(self, lexeme: str) -> float:
        """The factor of the idf, less than 1 for words that only begin alike."""
        return _BEGINS_ALIKE if lexeme in self.beginnings else 1.0

    def _in_any_form(self, lexeme: str) -> str:
        if lexeme in self.beginnings:
            return f"{lexeme_query(self.beginnings[lexeme])}:*"
        either = " | ".join(map(lexeme_query, self.found_as(lexeme)))
        return f"({either})" if self.forms.get(lexeme) else either

    @cached_property
    def expected_share(self) -> float:
        """The estimated share of rows that match."""
        if not self.wants_every_clause:
            return min(1.0, sum(self.frequencies.get(lexeme, _UNCOUNTED) for lexeme in self.anchors))
        # A text with a compound as it is written usually also has the lexemes of its parts.
        return _together(
            min(1.0, sum(self._share_of_all(term.parts or term.whole) for term in clause)) for clause in self.clauses
        )

    def expected_of(self, place: int) -> float:
        """The estimated document frequency of a term, as a minimum for the count.

        It is 0 for a proximity term, and for an anchor: all rows with an anchor are candidates, and are counted.
        """
        if place >= len(self.lexemes):
            return 0.0
        lexeme = self.lexemes[place]
        is_counted = not self.wants_every_clause and lexeme in self.anchors and lexeme in self._alone
        return 0.0 if is_counted and self.newest == 1 else self.expected.get(lexeme, 0.0)

    def lexemes_at(self, places: Iterable[int]) -> frozenset[str]:
        """The lexemes at these indexes of terms; proximity terms have none."""
        return frozenset(self.lexemes[place] for place in places if place < len(self.lexemes))

    def is_matched_by(self, places: Collection[int]) -> bool:
        """Whether a text matches every clause; `places` are indexes of its lexemes."""
        held = self.lexemes_at(places)
        return self.wants_every_clause or all(any(each.is_held(held) for each in clause) for clause in self.clauses)

    def _share_of_all(self, lexemes: Iterable[str]) -> float:
        return _together(self.frequencies.get(lexeme, _UNCOUNTED) for lexeme in lexemes)

    @property
    def rarities(self) -> dict[str, float]:
        """The idf of each lexeme, from its estimated document frequency."""
        return {each: rarity(found=self.expected.get(each, 0.0), among=self.rows) for each in self.lexemes}

    def split_terms(self, present: Collection[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Split the terms of the query into those with a lexeme in `present`, and others."""
        used: dict[str, None] = {}
        dropped: dict[str, None] = {}
        for term in (each for clause in self.clauses for each in clause):
            is_present = any(lexeme in present for lexeme in term.lexemes)
            (used if is_present else dropped)[term.term.text] = None
        return tuple(used), tuple(dropped)


def compile_query(
    parsed: ParsedQuery,
    lexed: Mapping[TermKey, LexedTerm],
    *,
    frequencies: Mapping[str, float],
    rows: int,
    in_all_forms: bool = False,
) -> CompiledQuery | None:
    """Compile a query for a search of `rows` rows; None if the query has no lexeme.

    Adjacent words of the query get a proximity term, which has less weight in a sentence. With `in_all_forms`, words of
    a sentence match in any of their forms; words of a short query never do.
    """
    with_lexemes = ([lexed[term, False] for term in clause if lexed[term, False].lexemes] for clause in parsed.clauses)
    clauses = [clause for clause in with_lexemes if clause]
    wanted = dict.fromkeys(lexeme for clause in clauses for each in clause for lexeme in each.lexemes)
    if not wanted:
        return None
    forms = _forms(clauses, wanted) if in_all_forms and parsed.is_sentence else {}
    shares = {each: sum(frequencies.get(form, 0.0) for form in (each, *others)) for each, others in forms.items()}
    if any(shares.values()):
        frequencies = {**frequencies, **{each: min(1.0, share) for each, share in shares.items() if share}}
    expected = {lexeme: frequencies.get(lexeme, 0.0) * rows for lexeme in wanted}
    # Sorting is stable, so equally rare lexemes stay in the order of the query.
    rarest = sorted(wanted, key=expected.__getitem__)[:MOST_LEXEMES]
    anchors: list[str] = []
    total = 0.0
    for lexeme in rarest:
        if anchors and total + expected[lexeme] > MOST_CANDIDATES:
            break
        total += expected[lexeme]
        anchors.append(lexeme)
    return CompiledQuery(
        parsed=parsed,
        clauses=clauses,
        lexemes=tuple(rarest),
        anchors=tuple(anchors),
        expected=expected,
        frequencies=frequencies,
        forms=forms,
        pairs=_pairs(clauses, rarest),
        required=tuple(_any_term(clause) for clause in clauses if any(each.term.is_phrase for each in clause)),
        excluded=tuple(each.query for each in (lexed[term, True] for term in parsed.excluded) if each.query),
        newest=min(1.0, MOST_CANDIDATES / total) if total else 1.0,
        rows=rows,
    )


def rarity(*, found: float, among: int) -> float:
    """The idf of BM25 for a term that `found` of `among` rows contain."""
    found = min(found, among)
    return math.log1p((among - found + 0.5) / (found + 0.5))


def _together(shares: Iterable[float]) -> float:
    """Estimate the share of rows with all of several lexemes, from the share of each.

    Words occur together more often than by chance. So the shares are multiplied with decreasing exponents: the smallest
    share with 1, the next with 1/2, then 1/4, and so on.
    """
    share = 1.0
    for place, each in enumerate(sorted(shares)):
        share *= each ** (0.5**place)
    return share


def _any_term(clause: Sequence[LexedTerm]) -> str:
    return " | ".join(f"({each.as_query})" for each in clause)


def _forms(clauses: Clauses, wanted: Collection[str]) -> dict[str, tuple[str, ...]]:
    """The other forms of each plain word, except lexemes that the query itself has."""
    plain = (each for clause in clauses for each in clause if each.forms)
    return {each.whole[0]: tuple(form for form in each.forms if form not in wanted) for each in plain}


def _pairs(clauses: Clauses, lexemes: Collection[str]) -> tuple[tuple[str, str], ...]:
    """The pairs of adjacent plain words in the query, if both lexemes are ranked."""
    words = [clause[0].whole if len(clause) == 1 and len(clause[0].whole) == 1 else () for clause in clauses]
    following = [(*a, *b) for a, b in zip(words, words[1:], strict=False) if a and b and a != b]
    return tuple(dict.fromkeys((a, b) for a, b in following if a in lexemes and b in lexemes))[:MOST_PAIRS]
