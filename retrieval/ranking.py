"""Orders what a search has found. Pure.

A message is worth the sum, over what is looked for, of how rare it is times how much of it the message holds. In a
conversation the question carries the words and the answer carries the fact: so a message also borrows from the two
before and after it, from the one before most if that asks something, and a little from the stretch it stands in. All of
it is added up before it saturates, so that no term counts twice. Weights are round numbers; none is delicate (measured
on questions about conversations; see `make eval`).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from retrieval.query_dates import Dates

NEXT_BUT_ONE, NEXT, AFTER_A_QUESTION = 0.15, 0.3, 0.6
SATURATION = 0.5
STRETCH, STRETCH_WEIGHT, STRETCH_SATURATION = 16, 0.3, 1.0
# A message by the person that the question names; about as much as one more rare word.
AUTHOR_WEIGHT = 2.0
DATE_WEIGHT = 1.0
# From here on length costs: a long tool output holds many words by chance. In lexemes.
LONG = 50
_LENGTH_WEIGHT = 0.5

Place = tuple[int, int]


@dataclass(frozen=True)
class Hit:
    """A row that holds something of what is looked for: how much, for each of those lexemes that it holds."""

    id: int | str
    conversation_id: int
    seq: int
    shares: Mapping[int, float]
    size: int
    asks: bool = False
    # Whether it answers every clause of the question.
    is_complete: bool = False

    @property
    def place(self) -> Place:
        return self.conversation_id, self.seq


@dataclass(frozen=True)
class Neighbour:
    """A message in or near a hit, as far as that matters for what it is worth."""

    id: int
    conversation_id: int
    seq: int
    size: int
    created_at: datetime
    author: str | None

    @property
    def place(self) -> Place:
        return self.conversation_id, self.seq


@dataclass(frozen=True)
class Weights:
    """What each lexeme is worth, and what else the question says of a message."""

    rarity: Sequence[float]
    names: frozenset[str] = frozenset()
    dates: Dates = field(default_factory=Dates)

    def of_its_own(self, created_at: datetime, author: str | None) -> float:
        """What a message is worth for who said it and when."""
        named = author is not None and not self.names.isdisjoint(names_in(author))
        return AUTHOR_WEIGHT * named + (DATE_WEIGHT * self.dates.told_by(created_at) if self.dates else 0.0)


def rarity(*, found: float, among: int) -> float:
    """The inverse document frequency of something that `found` of `among` rows hold."""
    found = min(found, among)
    return math.log1p((among - found + 0.5) / (found + 0.5))


def names_in(text: str) -> frozenset[str]:
    """The words of a text as names are compared."""
    words = (word.strip(".,;:!?\"'()[]").casefold() for word in text.replace("’", "'").split())
    return frozenset(word.removesuffix("'s") for word in words if word)


def length_cost(size: int) -> float:
    """By how much a text of so many lexemes is marked down."""
    return 1 + _LENGTH_WEIGHT * math.log(max(1.0, size / LONG))


def by_keywords(hit: Hit, weights: Weights) -> float:
    """The worth of a hit for itself: for a look-up, where neighbours and length say nothing."""
    return sum(weights.rarity[term] * share for term, share in hit.shares.items())


def alone(hit: Hit, weights: Weights) -> float:
    """The worth of a text without neighbours, such as a summary, on the scale of `in_context`."""
    held = sum(weights.rarity[term] * share / (share + SATURATION) for term, share in hit.shares.items())
    return held / length_cost(hit.size)


def in_context(hits: Iterable[Hit], weights: Weights) -> dict[Place, float]:
    """The worth of each place in or near the hits, before length, author and date are known (see `finished`)."""
    held: dict[Place, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    stretches: dict[Place, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    for hit in hits:
        conversation_id, seq = hit.place
        after = AFTER_A_QUESTION if hit.asks else NEXT
        reach = ((0, 1.0), (1, after), (-1, NEXT), (2, NEXT_BUT_ONE), (-2, NEXT_BUT_ONE))
        stretch = stretches[conversation_id, seq // STRETCH]
        for term, share in hit.shares.items():
            stretch[term] += share
            for distance, weight in reach:
                held[conversation_id, seq + distance][term] += weight * share
    around = {
        place: sum(weights.rarity[term] * share / (share + STRETCH_SATURATION) for term, share in shares.items())
        for place, shares in stretches.items()
    }
    return {
        (conversation_id, seq): sum(
            weights.rarity[term] * share / (share + SATURATION) for term, share in shares.items()
        )
        + STRETCH_WEIGHT * around.get((conversation_id, seq // STRETCH), 0.0)
        for (conversation_id, seq), shares in held.items()
        if seq >= 1
    }


def finished(worth: float, row: Neighbour, weights: Weights) -> float:
    """The worth of a place, with what the message in it is known to be."""
    return worth / length_cost(row.size) + weights.of_its_own(row.created_at, row.author)


def best_places(worths: Mapping[Place, float], most: int) -> list[Place]:
    """The most promising places, best first, of equals the newest."""
    return sorted(worths, key=lambda place: (worths[place], place), reverse=True)[:most]
