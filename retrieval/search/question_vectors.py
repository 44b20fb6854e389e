"""Subtract what searched passages have in common from a question's vector. Pure.

The passages of a conversation are about one subject and in one style, so their vectors are much alike, and so is the
vector of a question about it. What all share cannot tell passages apart, but brings those forward that say little else:
as in a search by words a word that is in every text. Source: Mu, Bhat and Viswanath, "All-but-the-Top" (2018), which
subtracts the whole mean from all vectors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

# The share of the mean that is subtracted. Not all of it, so that a question about the subject as a whole still finds
# its passages. docs/figures.md compares other shares.
COMMON = 0.4
# The mean of so many passages is close enough to that of all.
SAMPLE = 128


def every_nth(passages: int) -> int:
    """Return n; passages of messages whose ids are divisible by n are the sample.

    n is odd, because the ids of two speakers who take turns are even and odd.
    """
    return passages // SAMPLE | 1


def distinctive(question: Sequence[float], mean: Sequence[float]) -> list[float]:
    """Subtract a share of the passages' mean from the vector of a question.

    `mean` is the mean of vectors of length 1; `question` may have any length.
    """
    length = math.hypot(*question)
    return [each - COMMON * length * common for each, common in zip(question, mean, strict=True)]
