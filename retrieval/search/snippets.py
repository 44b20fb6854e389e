"""The piece of a text that shows best why it was found. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from retrieval.search.query import UNSPACED
from retrieval.types import Snippet

WIDTH = 200
# What is in the index of a text is in its first characters.
SEARCHED = 250_000
# Of each needle; a text that has it more often is no text that anybody reads.
_MOST_PLACES = 10_000
# Worths are whole numbers of these: sums of others would differ by the order in which they were added, so that of two
# places with the same needles the emptier might be shown.
_UNITS = 2**32
_rest_of_word = re.compile(r"[^\W_]*").match


@dataclass(frozen=True)
class Needles:
    """What is looked for in texts, with its worth, made ready once for all of them.

    A lexeme is found at the beginning of words and of the parts of compound words, whatever its accents and its ending.
    `stems`: each beginning of a word that stands for a needle, which one it is, and how long its ending may be.
    """

    worths: tuple[int, ...]
    stems: tuple[tuple[str, int, int], ...]

    @classmethod
    def of(cls, lexemes: Mapping[str, float]) -> Needles:
        stems = [(stem, number, _ending(stem)) for number, each in enumerate(lexemes) for stem in _stems(each)]
        return cls(tuple(round(worth * _UNITS) for worth in lexemes.values()), tuple(stems))


def snippet(content: str, needles: Needles, *, width: int = WIDTH) -> Snippet:
    """`width` characters of the content where the needles in them are worth most, each counted once.

    Without any of them, the beginning of the text.
    """
    spots = _spots(content[:SEARCHED], needles)
    if not spots:
        return Snippet(content[:width], 0)
    first, last = _cluster(spots, needles.worths, width)
    start = _start(content, spots[first][0], spots[last][1], width)
    shown = [
        (begin - start, min(end, start + width) - start) for begin, end, _ in spots if start <= begin < start + width
    ]
    return Snippet(content[start : start + width], start, tuple(shown))


def around(content: str, begin: int, end: int, *, offset: int, width: int = WIDTH) -> Snippet:
    """The same for a place that is known: `content` is a piece that begins at `offset` of the text."""
    start = _start(content, begin - offset, end - offset, width)
    shown = (begin - offset - start, min(end - offset - start, width))
    return Snippet(content[start : start + width], offset + start, (shown,) if shown[0] < shown[1] else ())


def _start(content: str, begin: int, end: int, width: int) -> int:
    """Where a piece begins that has the cluster in its middle, at the beginning of a word if one is near."""
    room = max(0, width - (end - begin))
    start = max(0, min(begin - room // 2, len(content) - width))
    if start > 0:
        blank = content.find(" ", start, min(begin, start + 20))
        start = blank + 1 if blank >= 0 else start
    return start


def _spots(content: str, needles: Needles) -> list[tuple[int, int, int]]:
    """Where needles are, in their order: from, to, and which."""
    folded = folded_in_place(content)
    lowered = _lowered_in_place(folded)
    # By their beginning, and of those that begin together the longest first. This is most of the work of showing what
    # was found, so that what is mostly so is seen without a call: no part begins with a lower case letter, and mostly
    # the word ends with the needle. A slice beyond either end is empty.
    found: list[tuple[int, int, int]] = []
    for stem, number, ending in needles.stems:
        # One after the other: to look for all at once, as an expression can, takes several times as long.
        begin, length = lowered.find(stem), len(stem)
        for _ in range(_MOST_PLACES):
            if begin < 0:
                break
            end = begin + length
            if folded[begin - 1 : begin].isalnum() and (folded[begin].islower() or not _begins_part(folded, begin)):
                pass
            elif not lowered[end : end + 1].isalnum():
                found.append((begin, -end, number))
            else:
                word_end = _rest_of_word(lowered, end).end()  # type: ignore[union-attr]  # which may be empty
                if word_end - end <= ending:
                    found.append((begin, -word_end, number))
                elif _goes_on_in_a_part(folded, end):
                    found.append((begin, -end, number))
            begin = lowered.find(stem, begin + 1)
    found.sort()
    return _apart(found)


def _apart(found: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Of those that lie over each other the first and longest; what was the end below nothing is the end again."""
    apart: list[tuple[int, int, int]] = []
    reached = 0
    for begin, end, number in found:
        if begin >= reached:
            reached = -end
            apart.append((begin, reached, number))
    return apart


def _stems(needle: str) -> Iterable[str]:
    """A lexeme as words may begin that have it: `studi` is that of study, `hope` that of hoping."""
    stem = folded_in_place(needle).lower()
    if not stem.strip():
        return
    yield stem
    if len(stem) > 3 and stem.isalpha() and stem.isascii() and stem[-1] in "ie":
        yield stem[:-1]


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
    return place < len(text) and (text[place].isupper() or UNSPACED.match(text[place]) is not None)


def _cluster(spots: Sequence[tuple[int, int, int]], worths: Sequence[int], width: int) -> tuple[int, int]:
    """The first and last spot of the best window: the one whose different needles are worth most, then the fullest."""
    best_worth, most, best_range = -1, 0, (0, 0)
    inside = [0] * len(worths)
    first, worth = 0, 0
    for last, (_, end, number) in enumerate(spots):
        if not inside[number]:
            worth += worths[number]
        inside[number] += 1
        while end - spots[first][0] > width and first < last:
            gone = spots[first][2]
            inside[gone] -= 1
            if not inside[gone]:
                worth -= worths[gone]
            first += 1
        if worth > best_worth or (worth == best_worth and last - first >= most):
            best_worth, most, best_range = worth, last - first + 1, (first, last)
    return best_range


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
