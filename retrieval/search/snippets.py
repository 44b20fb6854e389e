"""Choose the part of a text that shows best why the text matches; no I/O."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from retrieval.search.query.compiled_query import SHORT_HASH
from retrieval.search.query.parser import UNSPACED
from retrieval.types import Snippet

WIDTH = 200
# The approximate number of characters of a passage in the ranking of long messages (HALF_A_PASSAGE).
RANKED_BY = 360
# The end of a sentence or of a line, with the white space after it.
_BETWEEN_SENTENCES = re.compile(r"(?:[.!?]\s|\n)\s*")
# The number of words in half a passage; docs/figures.md compares other lengths.
HALF_A_PASSAGE = 30
_CYRILLIC = re.compile("[\u0400-\u04ff]")
# In a tsvector as text: a lexeme with its positions, such as 'port':3A,17A. All words after the last position of a
# tsvector get that position.
_LEXEME, _LAST_PLACE = re.compile(r"'((?:[^']|'')*)':([0-9A,]+)"), 16_383
# Only this many first characters of a text are indexed, and so searched here.
SEARCHED = 250_000
# At most this many occurrences of a needle in one text are considered.
_PLACES = range(10_000)
# Weights are integers in this unit. A sum of floats depends on the order of addition: of two windows with the same
# needles, the one with fewer occurrences might then be chosen.
_UNITS = 2**32


class Stem(NamedTuple):
    """Beginnings of words with a needle, longest first, each with its longest ending."""

    number: int
    beginnings: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Needles:
    """The lexemes to find in texts, with their weights; built once for many texts.

    A lexeme is found at the start of words and of parts of compound words; accents and endings are ignored.
    """

    worths: tuple[int, ...]
    stems: tuple[Stem, ...]

    @classmethod
    def of(cls, lexemes: Mapping[str, float]) -> Needles:
        stems = (_stem(lexeme, number) for number, lexeme in enumerate(lexemes))
        worths = tuple(round(worth * _UNITS) for worth in lexemes.values())
        return cls(worths, tuple(stem for stem in stems if stem is not None))


# An occurrence of a needle in a text: start, end, and the number of the needle.
Spot = tuple[int, int, int]


def snippet(content: str, needles: Needles, *, width: int = WIDTH) -> Snippet:
    """Return the best `width` characters of a text, from its best passage.

    If the text has none of the needles, this is the beginning of the text.
    """
    spots = _spots(content[:SEARCHED], needles)
    if not spots:
        return Snippet(content[:width], 0)
    if width < RANKED_BY:
        first, last = _cluster(spots, needles.worths, RANKED_BY)
        spots = spots[first : last + 1]
    first, last = _cluster(spots, needles.worths, width)
    start = _start(content, spots[first][0], spots[last][1], width)
    shown = ((begin - start, min(end - start, width)) for begin, end, _ in spots if start <= begin < start + width)
    return Snippet(content[start : start + width], start, tuple(shown))


def passage(content: str, needles: Needles, *, width: int) -> tuple[int, int]:
    """Find the start and end of the part that shows best why a text matches.

    The part has about `width` characters. It is extended to whole sentences or lines if these end nearby.
    """
    shown = snippet(content, needles, width=width)
    begin, end = shown.offset, shown.offset + len(shown.text)
    reach = width // 3
    before = [each.end() for each in _BETWEEN_SENTENCES.finditer(content, max(0, begin - reach), begin)]
    behind = _BETWEEN_SENTENCES.search(content, max(begin, end - 1), end + reach)
    first = 0 if begin <= reach and not before else before[-1] if before else begin
    last = len(content) if len(content) - end <= reach and not behind else behind.end() if behind else end
    return first, last


def around(content: str, begin: int, end: int, *, offset: int) -> Snippet:
    """Build a snippet around a known range; `content` begins at `offset` of the text."""
    start = _start(content, begin - offset, end - offset, WIDTH)
    shown = (begin - offset - start, min(end - offset - start, WIDTH))
    return Snippet(content[start : start + WIDTH], offset + start, (shown,) if shown[0] < shown[1] else ())


def _start(content: str, begin: int, end: int, width: int) -> int:
    """The start of a snippet with a range in its middle, or of a word close to it."""
    room = max(0, width - (end - begin))
    start = min(begin - room // 2, len(content) - width)
    if start <= 0:
        return 0
    blank = content.find(" ", start, min(begin, start + 20))
    return blank + 1 if blank >= 0 else start


def _spots(content: str, needles: Needles) -> list[Spot]:
    """Find the needles, in order; if some overlap, take the first and longest."""
    # The newline is a non-letter after the last character and, as index -1, also before the first one.
    folded = folded_in_place(content) + "\n"
    lowered = _lowered_in_place(folded)
    found: list[Spot] = []
    for stem in needles.stems:
        begin = -1
        for _ in _PLACES:
            begin = lowered.find(stem.beginnings[-1][0], begin + 1)
            if begin < 0:
                break
            if folded[begin - 1].isalnum() and (folded[begin].islower() or not _begins_part(folded, begin)):
                continue
            if end := _end(stem, begin, folded, lowered):
                found.append((begin, end, stem.number))
    apart: list[Spot] = []
    for begin, end, number in sorted(found, key=lambda spot: (spot[0], -spot[1], spot[2])):
        if not apart or begin >= apart[-1][1]:
            apart.append((begin, end, number))
    return apart


def _end(stem: Stem, begin: int, folded: str, lowered: str) -> int:
    """The end of a word that begins with a stem; 0 if the ending is too long."""
    for text, ending in stem.beginnings:
        if lowered.startswith(text, begin):
            end = word_end = begin + len(text)
            while word_end <= end + ending and lowered[word_end].isalnum():
                word_end += 1
            if word_end <= end + ending:
                return word_end
            # Here the next part of a compound word, or a character of an unspaced script, follows.
            if folded[end].isupper() or UNSPACED.match(folded[end]):
                return end
    return 0


def _stem(lexeme: str, number: int) -> Stem | None:
    """The beginnings of words with a lexeme: `studi`, `stud` for study and studies."""
    text = folded_in_place(lexeme).lower()
    if not text.strip():
        return None
    is_cut = len(text) > 3 and text.isalpha() and text.isascii() and text[-1] in "ie"
    beginnings = (text, text[:-1]) if is_cut else (text,)
    return Stem(number, tuple((each, _ending(each)) for each in beginnings))


def _ending(stem: str) -> int:
    """The maximum length of an ending, so that `art` is not found in `article`.

    A short hash may be the beginning of a whole one.
    """
    if len(stem) >= SHORT_HASH and stem.isalnum() and not (stem.isalpha() or stem.isdigit()):
        return 64
    if len(stem) < 3 or not stem.isalpha():
        return 0
    # A Russian stem may be shorter: `дан` for `данными`.
    return 6 if len(stem) >= 5 or _CYRILLIC.match(stem) else 3


def _begins_part(text: str, place: int) -> bool:
    """Whether a part of a compound word, or an unspaced character, begins here."""
    if UNSPACED.match(text[place]):
        return True
    return text[place].isupper() and (not text[place - 1].isupper() or text[place + 1 : place + 2].islower())


def _cluster(spots: Sequence[Spot], worths: Sequence[int], width: int) -> tuple[int, int]:
    """The first and last occurrence in the window with the greatest weight."""
    best_worth, best_first, best_last = -1, 0, 0
    latest = [-1] * len(worths)
    first, worth = 0, 0
    for last, (_, end, number) in enumerate(spots):
        if latest[number] < first:
            worth += worths[number]
        latest[number] = last
        while end - spots[first][0] > width and first < last:
            gone = spots[first][2]
            if latest[gone] == first:
                worth -= worths[gone]
            first += 1
        if worth > best_worth or (worth == best_worth and last - first > best_last - best_first):
            best_worth, best_first, best_last = worth, first, last
    return best_first, best_last


def folded_in_place(text: str) -> str:
    """Remove accents and compatibility forms; each character keeps its position."""
    if text.isascii() or unicodedata.is_normalized("NFKD", text):
        return text
    # A loop over distinct characters is enough: a text has few of them, and even fewer must be replaced.
    for each in set(text):
        text = text.replace(each, _plain(each))
    return text


def _lowered_in_place(text: str) -> str:
    lowered = text.lower()
    # A few letters become two in lower case. They stay as they are, so that later characters keep their positions.
    return (
        lowered
        if len(lowered) == len(text)
        else "".join(each if len(each.lower()) > 1 else each.lower() for each in text)
    )


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    base = unicodedata.normalize("NFKD", character)
    # Hangul syllables and ligatures would become several letters, so they stay as they are.
    bare = [each for each in base if not unicodedata.combining(each)]
    return bare[0] if len(bare) == 1 else character


def best_passage(words: str, lexemes: Mapping[str, int], rarity: Sequence[float]) -> frozenset[int] | None:
    """The terms in the passage with the greatest sum of idf; None if unknown.

    `words` is a tsvector as text, with the positions of words, so the text itself is not read. `lexemes` maps lexemes
    to terms. A passage is two adjacent halves. The parts of compound words have positions after all other words.
    """
    halves: dict[int, set[int]] = defaultdict(set)
    for lexeme, places in _LEXEME.findall(words):
        term = lexemes.get(lexeme.replace("''", "'"))
        if term is None:
            continue
        for place in _numbers(places):
            if place < _LAST_PLACE:
                halves[place // HALF_A_PASSAGE].add(term)
    passages = {frozenset(first.union(halves.get(number + 1, ()))) for number, first in halves.items()}
    # The second part of the key makes the choice among equal sums deterministic.
    return max(passages, key=lambda each: (sum(map(rarity.__getitem__, each)), sorted(each)), default=None)


def only_listed(words: str, lexemes: Mapping[str, int]) -> frozenset[int]:
    """The terms that a summary has only in the lists at its end; see `best_passage`."""
    places = _places(words)
    also, expand = (set(places.get(each, ())) for each in ("also", "expand"))
    named = max((place for place in places.get("name", ()) if place - 1 in also), default=_LAST_PLACE)
    details = max((place for place in places.get("detail", ()) if place - 2 in expand), default=_LAST_PLACE)
    first = {each: places[each][0] for each in lexemes if each in places}
    before = {lexemes[each] for each, place in first.items() if place < min(named, details)}
    return frozenset(lexemes[each] for each in first).difference(before)


def _places(words: str) -> dict[str, list[int]]:
    return {lexeme.replace("''", "'"): [*_numbers(places)] for lexeme, places in _LEXEME.findall(words)}


def _numbers(places: str) -> Iterator[int]:
    return map(int, places.replace("A", "").split(","))
