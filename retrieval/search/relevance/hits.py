"""The data for ranking: found rows (hits) and their neighbouring messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

# The conversation and seq of a message as one number. A search has thousands of them, and each is a key of a mapping.
Place = int


class Hit(NamedTuple):
    """A matching row; `shares` are its term frequencies, saturated."""

    # Hits and neighbours are tuples, because a search builds hundreds of each, and tuples cost least.

    # The number of a message, or the id of a summary or a file.
    name: str
    place: Place
    shares: Sequence[float]
    tokens: int
    # After how many messages a question is answered: 0 if no answer is near, None for a message without a question.
    answered_in: int | None = None
    # Whether the row matches every clause of the query.
    is_complete: bool = False
    # The position in the order of recording, among all searched rows.
    order_place: int = 0
    author: str | None = None
    role: str | None = None
    # None if the query has no date.
    created_at: datetime | None = None
    # Whether this is a call of one of LCM's own tools by an agent, or the result of such a call.
    is_of_lcm: bool = False
    # The indexes of the terms in the best passage of a long text; None for a short text.
    passage: frozenset[int] | None = None


@dataclass(frozen=True)
class Hits:
    """The best rows of a table by their own words, and the weight (idf) of each term.

    `present`: the indexes of the terms that the hits contain. `is_cut`: there are more hits than these. `is_bounded`:
    there were too many candidates to rank all of them.
    """

    hits: tuple[Hit, ...]
    rarity: tuple[float, ...]
    are_messages: bool
    present: frozenset[int] = frozenset()
    is_cut: bool = False
    is_bounded: bool = False


class Neighbour(NamedTuple):
    """A message at or near a hit: the fields that its score depends on."""

    name: str
    place: Place
    order_place: int
    # None if the query has no date.
    created_at: datetime | None
    author: str | None
    role: str
    tokens: int
    is_of_lcm: bool = False
    # If the query asks for a time: whether the message states one.
    tells_when: bool = False
    # If the query is a sentence that asks for no time: whether the message states a standing instruction.
    instructs: bool = False
