"""Cut a text into passages, each of which gets a vector. Pure.

The same text is always cut at the same places: at the end of a paragraph, else of a sentence, else of a word.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# Characters; about a hundred words. A vector of more represents each less well, and models read some 500 tokens.
LONGEST, SHORTEST = 800, 300
# What follows these is not embedded; the word index does not have it either.
MOST_CHARACTERS = 250_000

_ENDS = (re.compile(r"\n\s*\n"), re.compile(r"[.!?。！？][\"')\]]*\s|\n|[。！？]"), re.compile(r"\s"))
_WORD = re.compile(r"\w")


class Passage(NamedTuple):
    """A piece of a text, from `start` to before `end`, in characters."""

    start: int
    end: int


def passages_of(text: str) -> list[Passage]:
    """Cut a text into passages, in order, without those that hold no word."""
    found = []
    start, last = 0, min(len(text), MOST_CHARACTERS)
    while start < last:
        end = last if last - start <= LONGEST else _end(text, start)
        if _WORD.search(text, start, end):
            found.append(_stripped(text, start, end))
        start = end
    return found


def _end(text: str, start: int) -> int:
    """The best place to cut between the shortest and the longest passage."""
    lowest, highest = start + SHORTEST, start + LONGEST
    for pattern in _ENDS:
        ends = [match.end() for match in pattern.finditer(text, lowest, highest)]
        if ends:
            return ends[-1]
    return highest


def _stripped(text: str, start: int, end: int) -> Passage:
    piece = text[start:end]
    return Passage(start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip()))
