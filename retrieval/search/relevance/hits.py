"""The rows that a search has found and their neighbours, as ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

# A message's place as one number, conversation first: there are thousands of them in a search, and each is a key.
Place = int


class Hit(NamedTuple):
    """A row that matches: how much of each lexeme it holds."""

    # Hits and neighbours are tuples, as those are made fastest, and a search has hundreds of each.

    # The number of a message, or the id of a summary or a file.
    name: str
    place: Place
    shares: Sequence[float]
    tokens: int
    # Of one that asks something, how many messages on it is answered: 0 if not near; None if it asks nothing.
    answered_in: int | None = None
    # Whether it answers every clause of the question.
    is_complete: bool = False
    # Where it stands among everything that is searched, by when it came.
    order_place: int = 0
    author: str | None = None
    role: str | None = None
    # None where the query names no date.
    created_at: datetime | None = None
    # Whether it is what an agent did with LCM itself.
    is_of_lcm: bool = False
    # The terms in the best passage of a long text; None of a short one.
    passage: frozenset[int] | None = None


@dataclass(frozen=True)
class Hits:
    """The best rows of a table by themselves, and how rare each lexeme is.

    `present`: the terms that the hits hold. `is_cut`: there are more hits than these. `is_bounded`: there were too many
    to look at.
    """

    hits: tuple[Hit, ...]
    rarity: tuple[float, ...]
    are_messages: bool
    present: frozenset[int] = frozenset()
    is_cut: bool = False
    is_bounded: bool = False


class Neighbour(NamedTuple):
    """A message in or near a hit, as far as that matters for what it is worth."""

    name: str
    place: Place
    order_place: int
    # None where the query names no date.
    created_at: datetime | None
    author: str | None
    role: str
    tokens: int
    is_of_lcm: bool = False
    # Whether it tells a time, where the query asks for one.
    tells_when: bool = False
