"""Cut a text into passages, each of which gets a vector; no I/O.

Equal texts are always cut at the same positions: after a paragraph if possible, otherwise after a sentence or a word.
"""

from __future__ import annotations

import re
from typing import NamedTuple

# The length of a passage in characters. The maximum is about 100 words: one vector would represent a longer passage
# less well, and some models read only 500 tokens.
LONGEST, SHORTEST = 800, 300
# Only this many first characters of a text are embedded. The full-text index has the same limit.
MOST_CHARACTERS = 250_000

_ENDS = (re.compile(r"\n\s*\n"), re.compile(r"[.!?。！？][\"')\]]*\s|\n|[。！？]"), re.compile(r"\s"))
_WORD = re.compile(r"\w")


class Passage(NamedTuple):
    """A part of a text: the characters from `start` up to, but not including, `end`."""

    start: int
    end: int


def passages_of(text: str) -> list[Passage]:
    """Cut a text into passages, in order; leave out passages without a word."""
    found = []
    start, last = 0, min(len(text), MOST_CHARACTERS)
    while start < last:
        end = last if last - start <= LONGEST else _end(text, start)
        if _WORD.search(text, start, end):
            found.append(_stripped(text, start, end))
        start = end
    return found


def _end(text: str, start: int) -> int:
    """The best position to cut, between the shortest and the longest passage."""
    lowest, highest = start + SHORTEST, start + LONGEST
    for pattern in _ENDS:
        ends = [match.end() for match in pattern.finditer(text, lowest, highest)]
        if ends:
            return ends[-1]
    return highest


def _stripped(text: str, start: int, end: int) -> Passage:
    piece = text[start:end]
    return Passage(start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip()))
