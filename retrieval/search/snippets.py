"""Choose the piece of a text that shows best why it matches. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from retrieval.search.query.parser import UNSPACED
from retrieval.types import Snippet

WIDTH = 200
# What is in the index of a text is in its first characters.
SEARCHED = 250_000
# Of each needle; a text that has it more often is not read by people.
_PLACES = range(10_000)
# Worths are whole numbers of these: sums of others would differ by the order in which they were added, so that of two
# places with the same needles the emptier might be shown.
_UNITS = 2**32


class Stem(NamedTuple):
    """The beginning of words that have a needle: which one, how long the ending may be.

    `left`: what this needle and all that are worth less are worth together. `last`: the letter with which the lexeme
    goes on, and not all of these words do; `with_last`: how long the ending may be where a word does, with that letter.
    """

    text: str
    number: int
    ending: int
    left: int
    last: str
    with_last: int


@dataclass(frozen=True)
class Needles:
    """What is looked for in texts, with its worth, made ready once for all of them.

    A lexeme is found at the beginning of words and of the parts of compound words, whatever its accents and its ending.
    `stems`: by the worth of their needles, the greatest first.
    """

    worths: tuple[int, ...]
    stems: tuple[Stem, ...]

    @classmethod
    def of(cls, lexemes: Mapping[str, float]) -> Needles:
        worths = tuple(round(worth * _UNITS) for worth in lexemes.values())
        stems: list[Stem] = []
        left = 0
        for worth, number, lexeme in sorted(zip(worths, range(len(worths)), lexemes, strict=True)):
            left += worth
            stems += _stems(lexeme, number, left)
        return cls(worths, tuple(reversed(stems)))


def snippet(content: str, needles: Needles, *, width: int = WIDTH) -> Snippet:
    """`width` characters of the content where the needles in them are worth most, each counted once.

    Without any of them, the beginning of the text.
    """
    searched = content[:SEARCHED]
    spots, least = _spots(searched, needles, width)
    if not spots:
        return Snippet(content[:width], 0)
    worth, first, last = _cluster(spots, needles.worths, width)
    if worth < least:
        # What was found lies within something that is worth less.
        spots, _ = _spots(searched, needles)
        _, first, last = _cluster(spots, needles.worths, width)
    start = _start(content, spots[first][0], spots[last][1], width)
    stop = start + width
    shown: list[tuple[int, int]] = []
    for begin, end, _ in spots:
        if start <= begin < stop:
            shown.append((begin - start, (end if end < stop else stop) - start))
    return Snippet(content[start:stop], start, tuple(shown))


def around(content: str, begin: int, end: int, *, offset: int, width: int = WIDTH) -> Snippet:
    """The same for a place that is known: `content` is a piece that begins at `offset` of the text."""
    start = _start(content, begin - offset, end - offset, width)
    shown = (begin - offset - start, min(end - offset - start, width))
    return Snippet(content[start : start + width], offset + start, (shown,) if shown[0] < shown[1] else ())


def _start(content: str, begin: int, end: int, width: int) -> int:
    """Where a piece begins that has the cluster in its middle, at the beginning of a word if one is near."""
    room = max(0, width - (end - begin))
    start = min(begin - room // 2, len(content) - width)
    if start <= 0:
        return 0
    blank = content.find(" ", start, min(begin, start + 20))
    return blank + 1 if blank >= 0 else start


def _spots(content: str, needles: Needles, width: int | None = None) -> tuple[list[tuple[int, int, int]], int]:
    """Where needles are, in their order: from, to, and which; and what no place is worth where no one looked.

    Once the needles that are left decide little, they are searched only within `width` of what was found.
    """
    text = folded_in_place(content)
    # Behind the last character there is one that is no letter; which is also what Python finds before the first.
    folded = text + "\n"
    lowered = _lowered_in_place(folded)
    stretches, least = [(0, len(text))], 0
    # This is most of the work of showing what was found, so that what is mostly so is seen without a call: no part
    # begins with a lower case letter, and mostly the word ends with the needle.
    found: list[tuple[int, int, int]] = []
    for stem, number, ending, left, last, with_last in needles.stems:
        if found and width and not least and left < (most := needles.worths[found[0][2]]):
            # It is quicker to look around these than everywhere, though it is done stretch by stretch.
            are_few = 3 * width * len(found) < len(text)
            # To choose among many takes its time: it is worth it where little is left, which leaves few to choose.
            if are_few or 2 * left < most:
                found.sort()
                likely, least = (found, left + 1) if are_few else _likely(found, needles.worths, left, width)
                stretches = _around(likely, text, width)
        length = len(stem)
        for low, high in stretches:
            # One after the other: to look for all at once, as an expression can, takes several times as long.
            begin = low - 1
            for _ in _PLACES:
                begin = lowered.find(stem, begin + 1, high)
                if begin < 0:
                    break
                if folded[begin - 1].isalnum() and (folded[begin].islower() or not _begins_part(folded, begin)):
                    continue
                end = begin + length
                if not lowered[end].isalnum():
                    found.append((begin, end, number))
                else:
                    has_last = lowered[end] == last
                    farthest = end + (with_last if has_last else ending)
                    word_end = end + 1
                    while word_end <= farthest and lowered[word_end].isalnum():
                        word_end += 1
                    if word_end <= farthest:
                        found.append((begin, word_end, number))
                    elif has_last and _goes_on_in_a_part(folded, end + 1):
                        found.append((begin, end + 1, number))
                    elif _goes_on_in_a_part(folded, end):
                        found.append((begin, end, number))
    found.sort()
    return _apart(found), least


def _around(spots: Iterable[tuple[int, int, int]], text: str, width: int) -> list[tuple[int, int]]:
    """The stretches of the text not farther than this from these, in order; no needle goes beyond a blank."""
    stretches: list[tuple[int, int]] = []
    for begin, _, _ in spots:
        low = text.rfind(" ", 0, begin - width) + 1 if begin > width else 0
        high = text.find(" ", begin + width)
        if stretches and low <= stretches[-1][1]:
            low, _ = stretches.pop()
        stretches.append((low, high if high >= 0 else len(text)))
    return stretches


def _likely(
    found: Sequence[tuple[int, int, int]], worths: Sequence[int], left: int, width: int
) -> tuple[list[tuple[int, int, int]], int]:
    """Those that may be the last of the best cluster, by what is `left` to look for; and what none elsewhere is worth.

    What lies over each other counts, every piece: what is still to be found decides which of it remains.
    """
    best, _, _ = _cluster(_apart(found), worths, width)
    least = max(best, left + 1)
    likely: list[tuple[int, int, int]] = []
    latest = [-1] * len(worths)
    first, worth = 0, left
    for place, spot in enumerate(found):
        begin, _, number = spot
        if latest[number] < first:
            worth += worths[number]
        latest[number] = place
        # By their beginnings, which are in order: the ends of what lies over each other are not.
        while begin - found[first][0] > width:
            gone = found[first][2]
            if latest[gone] == first:
                worth -= worths[gone]
            first += 1
        if worth >= least:
            likely.append(spot)
    return likely, least


def _apart(found: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Of those that lie over each other the first, and of those that begin together the longest."""
    apart: list[tuple[int, int, int]] = []
    reached = 0
    for spot in found:
        begin, end, _ = spot
        if begin >= reached:
            apart.append(spot)
            reached = end
        elif begin == apart[-1][0] and end > reached:
            apart[-1] = spot
            reached = end
    return apart


def _stems(lexeme: str, number: int, left: int) -> Iterable[Stem]:
    """A lexeme as words may begin that have it: `studi` is that of study, `hope` that of hoping."""
    text = folded_in_place(lexeme).lower()
    if not text.strip():
        return
    is_cut = len(text) > 3 and text.isalpha() and text.isascii() and text[-1] in "ie"
    stem, last = (text[:-1], text[-1]) if is_cut else (text, "")
    yield Stem(stem, number, _ending(stem), left, last, with_last=1 + _ending(text))


def _ending(stem: str) -> int:
    """How many letters an ending may have, so that `art` is not found in `article`."""
    return 0 if len(stem) < 3 or not stem.isalpha() else 3 if len(stem) < 5 else 6


def _begins_part(text: str, place: int) -> bool:
    """Whether a part of a compound word begins in the middle of it, or one of a script that has no spaces."""
    if UNSPACED.match(text[place]):
        return True
    return text[place].isupper() and (not text[place - 1].isupper() or text[place + 1 : place + 2].islower())


def _goes_on_in_a_part(text: str, place: int) -> bool:
    """Whether what follows is the next part of a compound word, or of a script that has no spaces."""
    return text[place].isupper() or UNSPACED.match(text[place]) is not None


def _cluster(spots: Sequence[tuple[int, int, int]], worths: Sequence[int], width: int) -> tuple[int, int, int]:
    """The best window's worth, its first and last spot: where different needles are worth most, then the fullest."""
    if len(spots) == 1:
        return worths[spots[0][2]], 0, 0
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
    return best_worth, best_first, best_last


def folded_in_place(text: str) -> str:
    """The text without accents and compatibility forms, every character where it was."""
    if text.isascii() or unicodedata.is_normalized("NFKD", text):
        return text
    # Of the many characters of a text few are different ones, and of those fewer have to be replaced.
    for each in set(text):
        text = text.replace(each, _plain(each))
    return text


def _lowered_in_place(text: str) -> str:
    lowered = text.lower()
    # A few letters become two in lower case, which would move what follows.
    return (
        lowered
        if len(lowered) == len(text)
        else "".join(each if len(each.lower()) > 1 else each.lower() for each in text)
    )


@lru_cache(maxsize=4096)
def _plain(character: str) -> str:
    base = unicodedata.normalize("NFKD", character)
    # Hangul comes apart into letters, a ligature into several: they stay what they are.
    bare = [each for each in base if not unicodedata.combining(each)]
    return bare[0] if len(bare) == 1 else character
