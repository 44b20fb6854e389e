"""Make one order of two: by words, and by meaning. Pure.

By reciprocal ranks, as what the two count cannot be compared. Of short messages a vector says little, and words, with
those of the messages beside them, say nearly all: there, meaning counts less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from zlib import crc32

# The usual constant: what is far behind in one order counts for little less than what is a little before it.
CLOSENESS = 60
# How much meaning counts beside words, where messages have so many tokens; in between by their logarithm. What other
# weights change is in docs/figures.md.
SHORT, SHORT_WEIGHT = 50, 0.2
LONG, LONG_WEIGHT = 200, 1.0


class Fused(NamedTuple):
    """One match and its worth; the best that there could be has 1."""

    id: int | str
    worth: float

    @property
    def mark(self) -> int:
        """A short hash, by which a cursor finds it again."""
        return crc32(str(self.id).encode()) & 0xFFFFFF


def weight_of_meaning(tokens: Sequence[int]) -> float:
    """How much an order by meaning counts, where messages have so many tokens."""
    if not tokens:
        return SHORT_WEIGHT
    mean = sum(math.log(max(1, each)) for each in tokens) / len(tokens)
    share = (mean - math.log(SHORT)) / (math.log(LONG) - math.log(SHORT))
    return SHORT_WEIGHT + (LONG_WEIGHT - SHORT_WEIGHT) * min(1.0, max(0.0, share))


def fused(
    by_words: Sequence[int | str],
    by_meaning: Sequence[int | str],
    *,
    weight: float,
    speech: Mapping[int | str, float] | None = None,
) -> list[Fused]:
    """All that either order holds, best first.

    `speech`: by how much a message found by meaning is marked up or down for who says it.
    """
    worths: dict[int | str, float] = {}
    for rank, each in enumerate(by_words):
        worths[each] = 1 / (CLOSENESS + 1 + rank)
    for rank, each in enumerate(by_meaning):
        marked = (speech or {}).get(each, 1.0)
        worths[each] = worths.get(each, 0.0) + weight * marked / (CLOSENESS + 1 + rank)
    best = (1 + weight) / (CLOSENESS + 1)
    found = [Fused(each, worth / best) for each, worth in worths.items()]
    return sorted(found, key=lambda each: (-each.worth, str(each.id)))
