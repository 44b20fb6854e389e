"""Choose the candidates that add most worth per token, counting each term once.

The choice is greedy: coverage is submodular, so choosing by added worth per token is within a constant of the best. It
is also lazy: the worth that a candidate adds only shrinks, so it is recomputed only when the candidate is on the top.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

# `fill` stops after this many candidates that were too long for the remaining tokens: of the rest, few would fit.
_MISSES = 40

# Joined text costs less than its pieces (heads are shared), so tokens remain after the first round of `fill`.
_ROUNDS = 5
_WORTH_FILLING = 6


class Candidate(NamedTuple):
    """A unit that may be kept: its terms, weight, heading and tokens.

    `tokens` is an estimate, which is enough for ranking.
    """

    terms: tuple[int, ...]
    weight: float
    heading: int
    tokens: float


class Coverage:
    """A choice among candidates, which can be continued if tokens remain."""

    # Worth per token alone prefers fragments with one rare word. An exponent below 1 reduces the cost, so that a
    # sentence with three facts ranks above them.
    cost_power = 0.6

    def __init__(
        self,
        *,
        candidates: Sequence[Candidate],
        worth: Sequence[float],
        tokens_of: Callable[[int], float],
        tokens_of_heading: Callable[[int], float],
    ) -> None:
        self.chosen: list[int] = []
        self.covered: set[int] = set()
        self._candidates = candidates
        self._worth = worth
        self._tokens_of = tokens_of
        self._counted: dict[int, float] = {}
        # The tokens of each heading, counted once.
        self._headings = {heading: tokens_of_heading(heading) for heading in {each.heading for each in candidates}}
        self._paid: set[int] = set()
        self._taken: set[int] = set()
        self._under: dict[int, list[int]] = {}
        for index, candidate in enumerate(candidates):
            self._under.setdefault(candidate.heading, []).append(index)
        # Ties go to the earlier candidate, so that equal input gives equal output.
        self._heap = [(-self._rate(index), index) for index in range(len(candidates))]
        heapify(self._heap)

    def fill(self, budget: float) -> bool:
        """Choose more candidates, of at most `budget` tokens; False if nothing fits."""
        before, left = len(self.chosen), budget
        too_long: list[tuple[float, int]] = []
        while self._heap and left > 0 and len(too_long) < _MISSES:
            promised, index = heappop(self._heap)
            if index in self._taken:
                continue
            # Counting tokens is the expensive part, so only candidates that come to the top are counted.
            if index not in self._counted:
                self._counted[index] = self._tokens_of(index)
            now = -self._rate(index)
            if now == 0:
                continue
            if self._heap and now > self._heap[0][0]:
                heappush(self._heap, (now, index))
            elif self._price(index) > left:
                too_long.append((now, index))
            else:
                left -= self._price(index)
                self._take(index)
        for entry in too_long:
            heappush(self._heap, entry)
        return len(self.chosen) > before

    def drop(self, count: int) -> None:
        """Remove the last `count` choices; they are not chosen again."""
        del self.chosen[max(0, len(self.chosen) - count) :]
        self.covered = {term for index in self.chosen for term in self._candidates[index].terms}

    def _take(self, index: int) -> None:
        candidate = self._candidates[index]
        self._taken.add(index)
        self.chosen.append(index)
        self.covered.update(candidate.terms)
        if candidate.heading in self._paid:
            return
        # The other candidates under this heading now cost less. This is the only case in which a rate rises.
        self._paid.add(candidate.heading)
        for other in self._under[candidate.heading]:
            if other not in self._taken:
                heappush(self._heap, (-self._rate(other), other))

    def _rate(self, index: int) -> float:
        terms, weight, _, _ = self._candidates[index]
        covered, worth = self.covered, self._worth
        gain = sum([worth[term] for term in terms if term not in covered])
        return weight * gain / max(1.0, self._price(index)) ** self.cost_power if gain else 0.0

    def _price(self, index: int) -> float:
        """Return the tokens that this candidate adds, with its heading if that is new."""
        heading = self._candidates[index].heading
        own = self._own_tokens(index)
        return own if heading in self._paid else own + self._headings[heading]

    def _own_tokens(self, index: int) -> float:
        return self._counted.get(index, self._candidates[index].tokens)


def pack(
    coverage: Coverage, *, render: Callable[[Sequence[int]], str], count_tokens: Callable[[str], int], budget: int
) -> str:
    """Choose candidates until the budget is full; return their text ("" for none)."""
    text = render(coverage.chosen)
    for _ in range(_ROUNDS):
        room = budget - count_tokens(text)
        if room < _WORTH_FILLING or not coverage.fill(room):
            break
        text = render(coverage.chosen)
    while coverage.chosen and (tokens := count_tokens(text)) > budget:
        # The number to drop is in proportion to the excess, so that few steps are needed with any token counter.
        coverage.drop(max(1, len(coverage.chosen) * (tokens - budget) // (2 * tokens)))
        text = render(coverage.chosen)
    return text
