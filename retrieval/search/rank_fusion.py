"""Fuse two rankings, by words and by embeddings, into one. Pure.

Scores are sums of reciprocal ranks, as those of the two rankings cannot be compared. The embedding of a short message
says little beside its words and those of its neighbours: there, the ranking by embeddings has less weight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# The usual constant of reciprocal rank fusion: the larger, the less a difference in rank counts.
CLOSENESS = 60
# The weight of embeddings beside words, for short and for long messages, by their tokens; in between it follows their
# logarithm. docs/figures.md compares other weights.
SHORT, SHORT_WEIGHT = 50, 0.2
LONG, LONG_WEIGHT = 200, 1.0
# The weight of length in a ranking by words that is fused: half of PAGE_COSTS in ranking.py, because the ranking by
# embeddings brings the messages of a brief speaker forward, too.
FUSED_PAGE_COSTS = 0.1


def weight_of_meaning(tokens: Sequence[int]) -> float:
    """The weight of the ranking by embeddings, for messages of these token counts."""
    if not tokens:
        return SHORT_WEIGHT
    mean = sum(math.log(max(1, each)) for each in tokens) / len(tokens)
    share = (mean - math.log(SHORT)) / (math.log(LONG) - math.log(SHORT))
    return SHORT_WEIGHT + (LONG_WEIGHT - SHORT_WEIGHT) * min(1.0, max(0.0, share))


def fused(by_words: Sequence[int | str], by_meaning: Sequence[int | str], *, weight: float) -> dict[int | str, float]:
    """Fuse two rankings of ids into one, best first, with scores.

    What is first in both has the score 1.
    """
    worths: dict[int | str, float] = {}
    for rank, each in enumerate(by_words):
        worths[each] = 1 / (CLOSENESS + 1 + rank)
    for rank, each in enumerate(by_meaning):
        worths[each] = worths.get(each, 0.0) + weight / (CLOSENESS + 1 + rank)
    best = (1 + weight) / (CLOSENESS + 1)
    found = sorted(worths.items(), key=lambda each: (-each[1], str(each[0])))
    return {id: worth / best for id, worth in found}
