"""How a question is looked up: which lexemes find its candidates, and which only help to rank them. Pure.

A row needs to hold at least one *anchor* to be looked at. Rare lexemes find few rows; the most common ones find half of
a conversation and tell nothing, so they are anchors only where nothing rarer is asked for, and then only in the newest
rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice

from retrieval.search.query.lexemes import Meaning, lexeme_query
from retrieval.search.word_index import WordIndex, together

MOST_LEXEMES = 32
# Of several conditions the index passes by what it has of one, not of another; a plan is kept for each number of them.
_MOST_ASKED = 3
MOST_CANDIDATES = 1000
MOST_PAIRS = MOST_COMPOUNDS = 6
# The parts of a compound in a row are one more word, also in a sentence: without, R@10 of the last part of a path is
# 0.919, not 0.971 (`make eval`).
_COMPOUND = 1.0
# A few words are mostly meant together; in a sentence they also follow each other by grammar alone. R@1 is 0.462
# without pairs in sentences, 0.476 with half of this, 0.484 so, and 0.482 with half as much again (`make eval`).
_PAIR_OF_A_SENTENCE = 0.2


@dataclass(frozen=True)
class InARow:
    """Lexemes that tell more where they follow each other: the tsquery for that, and what it counts beside each."""

    lexemes: tuple[str, ...]
    query: str
    weight: float


@dataclass(frozen=True)
class Plan:
    """The lexemes to rank by, which of them are anchors, how many rows each is expected in, and what to leave out.

    `newest`: the share of the rows that is looked at, from the newest on.
    """

    clauses: tuple[tuple[Meaning, ...], ...]
    lexemes: tuple[str, ...]
    anchors: tuple[str, ...]
    expected: Mapping[str, float]
    # What else a lexeme is found as.
    forms: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # Lexemes that follow each other in the question.
    pairs: tuple[tuple[str, str], ...] = ()
    is_sentence: bool = False
    required: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    newest: float = 1.0
    wants_every_clause: bool = False
    # Words that are compound are looked for as words, not by each of their parts.
    wants_words: bool = False
    # One word was asked for, and so only texts that hold it answer.
    is_one_word: bool = False
    # What these rows are looked for in.
    index: WordIndex = field(default_factory=lambda: WordIndex({}, -1))
    rows: int = 0

    @property
    def is_bounded(self) -> bool:
        """Whether rows that hold some of the words are not looked at."""
        if self.wants_every_clause:
            return False
        return any(lexeme not in self.anchors for lexeme in self._alone) or self.newest < 1

    @cached_property
    def _alone(self) -> tuple[str, ...]:
        """The lexemes that may each bring in rows."""
        if not self.wants_words:
            return self.lexemes
        plain = {lexeme for clause in self.clauses for each in clause if not each.parts for lexeme in each.whole}
        return tuple(lexeme for lexeme in self.lexemes if lexeme in plain)

    @property
    def takes_neighbours(self) -> bool:
        """Whether a message beside a hit may be an answer: it need not hold what every answer must."""
        return not (
            (self.required and not self.is_sentence) or self.excluded or self.wants_every_clause or self.is_one_word
        )

    @cached_property
    def query(self) -> str:
        """The tsquery that every candidate answers."""
        if self.wants_every_clause:
            conditions = [" | ".join(f"({each.as_query})" for each in clause) for clause in self.clauses]
        else:
            whole = (f"({each.as_query})" for each in self._sought_whole)
            conditions = [" | ".join([*whole, *map(self._in_any_form, self._sought_alone)]), *self.required]
        return self._all_of(conditions)

    @cached_property
    def asked(self) -> Mapping[str, str]:
        """The tsqueries for the index, asked at once, by the names of their values; see `Reach.sought`."""
        if self.wants_every_clause:
            clauses = [each for clause in self.clauses for each in _conditions(clause)]
            alone = min(len(clauses), _MOST_ASKED) - 1
            conditions = [*(f"({each})" for each in clauses[:alone]), self._all_of(clauses[alone:])]
        else:
            whole = (f"({each.as_sought})" for each in self._sought_whole)
            either = " | ".join([*whole, *map(self._in_any_form, self._sought_alone)])
            conditions = [self._all_of([either, *self.required])]
        return {f"sought_{number}": condition for number, condition in enumerate(conditions)}

    @property
    def asks_for_all(self) -> bool:
        """Whether all that the index gives by these answers the query, so that no row needs to be asked."""
        if not (self.wants_every_clause or self.wants_words):
            return True
        return not any(each.unasked for clause in self.clauses for each in clause)

    @cached_property
    def by_words_alone(self) -> bool:
        """Whether the index for words had better be the only one that is looked into."""
        return self.tells_place or self._is_enough

    @property
    def tells_place(self) -> bool:
        """Whether that index can be asked for what stands in one conversation, or somewhere in it."""
        return self.index.of_one is not None

    @cached_property
    def in_conversation(self) -> bool:
        """Whether that index had better be asked for the rows of the one conversation only.

        To tell them from others takes it as long as to fetch some hundreds of those.
        """
        return self.tells_place and not self._is_enough

    @cached_property
    def _is_enough(self) -> bool:
        """Whether it leads to few rows beyond reach, though it is asked for the words alone."""
        if self.wants_every_clause:
            asked = min(sum(map(self._share_asked, clause)) for clause in self.clauses)
        else:
            asked = sum(map(self._share_asked, self._sought_whole)) + sum(map(self.index.share, self._sought_alone))
        return self.index.is_enough(self.supposed_share, asked=asked, rows=self.rows)

    @cached_property
    def supposed_share(self) -> float:
        """Which share of the rows may answer the query; of a lexeme that has no count, by what that mostly means."""
        if self.wants_every_clause:
            return together(sum(map(self._share_of, clause)) for clause in self.clauses)
        return sum(map(self._share_of, self._sought_whole)) + sum(map(self.index.share, self._sought_alone))

    def _share_of(self, term: Meaning) -> float:
        # A text that has a compound as it stands mostly has its parts, too.
        return self.index.share_of_all(term.parts or term.whole)

    def _share_asked(self, term: Meaning) -> float:
        """That of the rarest lexeme of it, whose rows are asked for all others."""
        return min(map(self.index.share, term.parts or term.whole), default=0.0)

    @cached_property
    def _compounds(self) -> tuple[Meaning, ...]:
        return tuple(each for clause in self.clauses for each in clause if each.parts)

    @property
    def _sought_whole(self) -> tuple[Meaning, ...]:
        """The terms that bring in rows as wholes."""
        return self._compounds if self.wants_words else ()

    @property
    def _sought_alone(self) -> tuple[str, ...]:
        """The lexemes that bring in rows, each for itself."""
        return tuple(lexeme for lexeme in self._alone if lexeme in self.anchors)

    def _all_of(self, conditions: Iterable[str]) -> str:
        return " & ".join([f"({condition})" for condition in conditions] + [f"!({each})" for each in self.excluded])

    def for_every_clause(self) -> Plan:
        """The same for texts that answer all of the question, which are few enough to look at wherever they are."""
        return replace(self, wants_every_clause=True, newest=1.0)

    def for_any_word(self) -> Plan | None:
        """The same for texts that hold any of the words, where one that is compound counts only as a whole.

        None where that is no other question, or would bring in more rows than may be looked at.
        """
        expected = self.rows * sum(map(self._share_of, self._compounds))
        return replace(self, wants_words=True) if self._compounds and expected <= MOST_CANDIDATES else None

    def for_any_lexeme(self) -> Plan:
        """The same for texts that hold any of the lexemes, however common: of those, the newest."""
        total = sum(self.expected.get(lexeme, 0.0) for lexeme in self.lexemes)
        return replace(self, anchors=self.lexemes, newest=min(1.0, MOST_CANDIDATES / total) if total else 1.0)

    @cached_property
    def terms(self) -> tuple[str, ...]:
        """The tsqueries to rank by: of each lexeme, then of those in a row."""
        return (*map(self._in_any_form, self.lexemes), *(each.query for each in self.in_a_row))

    @cached_property
    def in_a_row(self) -> tuple[InARow, ...]:
        """What is to be ranked by, too: compounds, and pairs of words. In a sentence, a word may stand between."""
        compounds = {
            each.in_a_row: InARow(each.parts, each.in_a_row, _COMPOUND)
            for each in self._compounds
            if each.in_a_row and all(part in self.lexemes for part in each.parts)
        }
        near = " | {0} <2> {1}" if self.is_sentence else ""
        pairs = (
            InARow(pair, ("{0} <-> {1}" + near).format(*map(self._in_any_form, pair)), self.pair_weight)
            for pair in self.pairs
        )
        return (*islice(compounds.values(), MOST_COMPOUNDS), *pairs)

    def found_as(self, lexeme: str) -> tuple[str, ...]:
        """The lexeme and what else it is found as."""
        return (lexeme, *self.forms.get(lexeme, ()))

    def _in_any_form(self, lexeme: str) -> str:
        either = " | ".join(map(lexeme_query, self.found_as(lexeme)))
        return f"({either})" if self.forms.get(lexeme) else either

    @property
    def pair_weight(self) -> float:
        """What a pair of words counts beside each of them."""
        return _PAIR_OF_A_SENTENCE if self.is_sentence else 1.0

    @cached_property
    def expected_share(self) -> float:
        """Which share of the rows may hold everything that the query asks for; 0 where no count is known."""
        return together(self._shares) if self.wants_every_clause else self.greatest_share

    @cached_property
    def greatest_share(self) -> float:
        """The same if words came together as often as they can."""
        return min(self._shares, default=0.0)

    @cached_property
    def _shares(self) -> list[float]:
        if not self.wants_every_clause:
            return [min(1.0, sum(map(self._known_share, self.anchors)))]
        return [
            min(1.0, sum(min(map(self._known_share, term.whole), default=0.0) for term in clause))
            for clause in self.clauses
        ]

    def expected_by_index(self) -> float:
        """In how many rows, of all that the index for words leads to, that may be; as far as it is known."""
        return self.expected_share * self._led_to

    def rows_worth_collecting(self) -> float:
        """How many rows one may walk past in the time that the index for words takes to collect what is asked for.

        Of words that have to come together, it passes in each list no more entries than the rarest has.
        """
        shares = self._shares
        entries = len(shares) * min(shares, default=0.0)
        return self.index.rows_in_the_time(entries=entries, found=self.expected_by_index())

    @property
    def _led_to(self) -> float:
        """Among how many rows the index for words finds what is sought."""
        return float(self.index.of_one or 0) if self.in_conversation else max(0.0, self.index.everywhere)

    def _known_share(self, lexeme: str) -> float:
        return self.index.frequencies.get(lexeme, 0.0)

    def expected_of(self, place: int) -> float:
        """In how many rows at least the lexeme or pair at this place is to be expected.

        Of an anchor nothing needs to be expected: all the rows that hold it are looked at, and are counted.
        """
        if place >= len(self.lexemes):
            return 0.0
        lexeme = self.lexemes[place]
        is_sought = not self.wants_every_clause and lexeme in self.anchors and lexeme in self._alone
        return 0.0 if is_sought and self.newest == 1 else self.expected.get(lexeme, 0.0)

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
    of_one: int | None = None,
    is_sentence: bool = False,
    in_all_forms: bool = False,
) -> Plan | None:
    """How to look the clauses up in so many rows; None if nothing in them can be looked up.

    `frequencies`: the share of rows that hold a lexeme, for those that the statistics know; any other is rare.
    `everywhere`: how many rows there are in all, as far as that is known; the index for words covers them all.
    `of_one`: how many of these are of the conversation that is asked for, if it is one, and all of it.
    Words that follow each other in the question count once more where they do so in a text; in a sentence, a little.
    `in_all_forms`: a word is found as any of its forms.
    """
    wanted = dict.fromkeys(lexeme for clause in clauses for each in clause for lexeme in each.lexemes)
    if not wanted:
        return None
    forms = _forms(clauses, wanted) if in_all_forms else {}
    shares = {each: sum(frequencies.get(form, 0.0) for form in (each, *others)) for each, others in forms.items()}
    if any(shares.values()):
        frequencies = {**frequencies, **{each: min(1.0, share) for each, share in shares.items() if share}}
    expected = {lexeme: frequencies.get(lexeme, 0.0) * rows for lexeme in wanted}
    # Sorting is stable: of equally rare ones, those that the question names first.
    rarest = sorted(wanted, key=expected.__getitem__)[:MOST_LEXEMES]
    index = WordIndex(frequencies, everywhere, of_one)
    clauses = [[each.asked_of(index) for each in clause] for clause in clauses]
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
        forms=forms,
        pairs=_pairs(clauses, rarest),
        is_sentence=is_sentence,
        required=tuple(
            " | ".join(f"({each.as_query})" for each in clause)
            for clause in clauses
            if any(each.term.is_phrase for each in clause)
        ),
        excluded=tuple(each.query for each in excluded if each.query),
        newest=min(1.0, MOST_CANDIDATES / total) if total else 1.0,
        index=index,
        rows=rows,
    )


def _conditions(clause: Sequence[Meaning]) -> tuple[str, ...]:
    """What the index is asked for to find the clause: all of these tsqueries at once."""
    if len(clause) == 1:
        return clause[0].conditions
    return (" | ".join(f"({each.as_sought})" for each in clause),)


def _forms(clauses: Iterable[Sequence[Meaning]], wanted: Collection[str]) -> dict[str, tuple[str, ...]]:
    """What else each plain word is found as, but for what is looked for by itself."""
    meant = (each for clause in clauses for each in clause if each.forms)
    return {each.whole[0]: tuple(form for form in each.forms if form not in wanted) for each in meant}


def _pairs(clauses: Sequence[Sequence[Meaning]], lexemes: Collection[str]) -> tuple[tuple[str, str], ...]:
    """Two plain words that follow each other, of those that are looked for."""
    words = [clause[0].whole if len(clause) == 1 and len(clause[0].whole) == 1 else () for clause in clauses]
    following = [(*a, *b) for a, b in zip(words, words[1:], strict=False) if a and b and a != b]
    return tuple(dict.fromkeys((a, b) for a, b in following if a in lexemes and b in lexemes))[:MOST_PAIRS]
