"""Rank what a search has found. Pure.

A message is worth the sum, over what is looked for, of how rare it is times how much of it the message holds. In a
conversation the question carries the words and the answer carries the fact: so a message also borrows from the two
before and after it, all of a question that it answers, and a little from the stretch it stands in. All of it is added
up before it saturates, so that no term counts twice. Of a long message, words outside of its best passage count little,
it borrows less, and where one side writes a line and the other a page, the line counts more. Weights are round numbers;
none is delicate (docs/figures.md has what each changes, in short turns and in long).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import Any, NamedTuple
from zlib import crc32

from retrieval.search.query.compiled_query import CompiledQuery
from retrieval.search.query.parser import Dates
from retrieval.search.relevance.hits import Hit, Hits, Neighbour, Place

# How much of what a message says counts for those so many places on. An answer need not repeat a word of its question,
# so it counts as if it had said them all, wherever it stands; what stands before a question does not answer it. By
# `make eval ARGS="--only retrieval"`: with 0.6 instead of 1.0 for an answer, nDCG@10 is 0.678, not 0.686; with no less
# for what stands before a question than for anything else, 0.683.
_AROUND = {1: 0.2, -1: 0.2, 2: 0.2, -2: 0.2}
_AROUND_A_QUESTION = {1: 0.2, -1: 0.1, 2: 0.2, -2: 0.1}
_ANSWER = 1.0
# A message that asks something at its end can still say when something was.
_ANSWER_TO_WHEN = 0.4
# A message that names a time, such as `yesterday` or `in June`, answers a question for one.
_TELLS_WHEN_WEIGHT = 0.5
# The answer to a question is seldom in a message that asks the same.
_ASKING_COSTS = 0.5
# How much one counts that has every word of the question and not many more, and was looked up in LCM.
REPEATED, TOKENS_A_CHARACTER = 0.3, 0.5
SATURATION = 0.5
# A stretch is so many messages; the two beside it count by the second number, so that its ends matter less.
STRETCH, BESIDE_A_STRETCH, STRETCH_WEIGHT, STRETCH_SATURATION = 8, 0.7, 0.2, 1.0
# A message by the person that the question names; about as much as one more rare word.
AUTHOR_WEIGHT = 2.0
DATE_WEIGHT = 1.0
# From here on length costs: a long tool output holds many words by chance, and lends them to what stands beside it. Two
# that follow each other it seldom holds by chance. In tokens.
LONG = 100
_LENGTH_WEIGHT = 1.0
# The same in SQL, for choosing what is worth ranking with care.
LENGTH_COST_SQL = f"(1 + {_LENGTH_WEIGHT}::float8 * ln(greatest(1, token_count / {LONG}::float8)))"

# Of a word outside of the best passage of a long text.
OUTSIDE = 0.3
# A line says what is so; the page that answers it repeats its words and adds all that goes with them. So a role with
# `ENOUGH` hits counts more by this power of how many times it writes more briefly than others; up to `ALIKE`, the same.
BRIEFNESS, ALIKE, ENOUGH = 0.25, 1.4, 3
# By how much a page counts less than a line of the same worth, in any role.
PAGE_COSTS = 0.2

# Fewer texts than this with every word in them, and those with any of the words are given too.
A_HANDFUL = 5

_SEQ_BITS = 40
PLACE_SQL = f"conversation_id << {_SEQ_BITS} | seq"


def place_of(conversation_id: int, seq: int) -> Place:
    return conversation_id << _SEQ_BITS | seq


def conversation_of(place: Place) -> int:
    return place >> _SEQ_BITS


def seq_of(place: Place) -> int:
    return place & ((1 << _SEQ_BITS) - 1)


@dataclass(frozen=True)
class Weights:
    """What each lexeme is worth, and what else the question says of a message."""

    rarity: Sequence[float]
    names: frozenset[str] = frozenset()
    dates: Dates = field(default_factory=Dates)
    is_sentence: bool = False
    asks_when: bool = False
    # Then whatever holds it answers: a page as well as a line.
    names_identifier: bool = False
    # So many of the terms, the last ones, are words that follow each other.
    in_a_row: int = 0

    @cached_property
    def words(self) -> int:
        """So many of the terms, the first ones, are single words."""
        return len(self.rarity) - self.in_a_row

    def of_its_own(self, row: Neighbour | Hit) -> float:
        """What a message is worth for its author, its date, and the time it tells."""
        worth = 0.0
        if row.author is not None and not self.names.isdisjoint(names_in(row.author)):
            worth += AUTHOR_WEIGHT
        if row.created_at is not None and self.dates:
            worth += DATE_WEIGHT * self.dates.information_in(row.created_at)
        if isinstance(row, Neighbour) and row.tells_when:
            worth += _TELLS_WHEN_WEIGHT
        return worth

    def of_speech(self, row: Neighbour | Hit, speakers: Mapping[tuple[int, str | None], float]) -> float:
        """By how much a message is marked up or down for who says it, and its length."""
        if self.names_identifier:
            return 1.0
        page = 1 + PAGE_COSTS * math.log(row.tokens / LONG) if row.tokens > LONG else 1.0
        return speakers.get((conversation_of(row.place), row.role), 1.0) / page


# Of hundreds of messages, few people are the authors.
@lru_cache(maxsize=256)
def names_in(text: str) -> frozenset[str]:
    """The words of a text as names are compared."""
    words = (word.strip(".,;:!?\"'()[]").casefold() for word in text.replace("’", "'").split())
    return frozenset(word.removesuffix("'s") for word in words if word)


def length_cost(tokens: int) -> float:
    """By how much a text of so many tokens is marked down."""
    return 1 + _LENGTH_WEIGHT * math.log(tokens / LONG) if tokens > LONG else 1.0


def speakers_of(hits: Iterable[Hit]) -> dict[tuple[int, str | None], float]:
    """How much each role of a conversation counts, by how briefly it writes."""
    lengths: dict[int, dict[str | None, list[float]]] = defaultdict(lambda: defaultdict(list))
    for hit in hits:
        lengths[conversation_of(hit.place)][hit.role].append(math.log(max(1, hit.tokens)))
    speakers: dict[tuple[int, str | None], float] = {}
    for conversation_id, by_role in lengths.items():
        means = {role: sum(each) / len(each) for role, each in by_role.items() if len(each) >= ENOUGH}
        middle = sum(means.values()) / max(1, len(means))
        for role, mean in means.items():
            differs = max(0.0, abs(mean - middle) - math.log(ALIKE))
            speakers[conversation_id, role] = math.exp(-BRIEFNESS * math.copysign(differs, mean - middle))
    return speakers


def by_keywords(hit: Hit, weights: Weights) -> float:
    """The worth of a hit by its words alone, for look-ups of identifiers."""
    worth = 0.0
    for rarity, share in zip(weights.rarity, hit.shares, strict=False):
        worth += rarity * share
    return worth


def alone(hit: Hit, weights: Weights) -> float:
    """The worth of a text without neighbours, such as a summary."""
    rarity, words, worth = weights.rarity, weights.words, 0.0
    cost = length_cost(hit.tokens)
    for term, share in enumerate(hit.shares):
        if term < words:
            share /= cost
        worth += rarity[term] * share / (share + SATURATION)
    return worth


def in_context(hits: Collection[Hit], weights: Weights) -> dict[Place, float]:
    """The worth of each place in or near the hits, without author and date.

    Places beyond the ends of a conversation are among them; no message stands there.
    """
    held: dict[int, dict[Place, float]] = defaultdict(lambda: defaultdict(float))
    stretches: dict[int, dict[Place, float]] = defaultdict(lambda: defaultdict(float))
    words = weights.words
    answer = _ANSWER_TO_WHEN if weights.asks_when else _ANSWER
    offsets: dict[int | None, dict[int, float]] = {None: _AROUND, 0: _AROUND_A_QUESTION}
    # What a long message borrows is marked down like what it holds: if it answers, it holds the words itself.
    costs = {hit.place: length_cost(hit.tokens) for hit in hits}
    for hit in hits:
        place, on, passage = hit.place, hit.answered_in, hit.passage
        if on is not None and on not in offsets:
            offsets[on] = {**_AROUND_A_QUESTION, on: answer}
        lent = [(place + offset, weight / costs.get(place + offset, 1.0)) for offset, weight in offsets[on].items()]
        cost = costs[place]
        stretch = place // STRETCH
        for term, share in enumerate(hit.shares):
            if not share:
                continue
            of_term = held[term]
            if term < words:
                share /= cost
                if passage is not None and term not in passage and not weights.names_identifier:
                    share *= OUTSIDE
            of_term[place] += share
            stretches[term][stretch] += share
            for there, weight in lent:
                of_term[there] += weight * share
    worths = _summed(held, weights, SATURATION)
    if weights.is_sentence:
        for hit in hits:
            if hit.answered_in is not None:
                worths[hit.place] = max(0.0, worths[hit.place] - _ASKING_COSTS)
    where = {place // STRETCH for place in worths}
    nearby = _summed(_spread(stretches, where), weights, STRETCH_SATURATION)
    return {place: worth + STRETCH_WEIGHT * nearby.get(place // STRETCH, 0.0) for place, worth in worths.items()}


def _spread(stretches: Mapping[int, Mapping[int, float]], where: Collection[int]) -> dict[int, dict[int, float]]:
    """How much of each term is in and beside each stretch, for those in `where`."""
    spread: dict[int, dict[int, float]] = {}
    for term, shares in stretches.items():
        of_term = spread[term] = defaultdict(float, shares)
        for stretch, share in shares.items():
            if stretch - 1 in where:
                of_term[stretch - 1] += BESIDE_A_STRETCH * share
            if stretch + 1 in where:
                of_term[stretch + 1] += BESIDE_A_STRETCH * share
    return spread


def _summed(held: Mapping[int, Mapping[Place, float]], weights: Weights, saturation: float) -> dict[Place, float]:
    """What each place is worth for all that it holds, each term saturating by itself."""
    worths: dict[Place, float] = {}
    so_far = worths.get
    for term, shares in held.items():
        rarity = weights.rarity[term]
        for place, share in shares.items():
            worths[place] = so_far(place, 0.0) + rarity * share / (share + saturation)
    return worths


def fresher(worth: float, place: int, newest: int) -> float:
    """Mark up what is new: the newest of all is worth twice as much.

    What is said is forgotten by a power of its age, so it is the logarithm of the age that counts: half of the bonus is
    lost after the square root of all messages. Twice, because then neither decides alone: of two that fit equally the
    newer comes first, and what fits more than twice as well comes first from however long ago.
    """
    freshness = 1 - math.log1p(max(0, newest - place)) / math.log1p(newest) if newest > 0 else 1.0
    return worth * (1 + max(0.0, freshness))


def best_places(worths: Mapping[Place, float], most: int) -> list[Place]:
    """The most promising places, best first."""
    return [place for place, _ in sorted(worths.items(), key=itemgetter(1), reverse=True)[:most]]


class RankedMatch(NamedTuple):
    """One match and its worth. The greatest comes first: no two have the same `key`."""

    # What an agent searched for in LCM, and what it was shown, comes behind what it is about.
    is_of_talk: bool
    # Whether it is one of those that come before all others.
    is_first: bool
    worth: float
    conversation_id: int
    seq: int
    # The number of a message, or the id of a summary or a file.
    name: str
    # Whether it matches every clause of the query.
    is_complete: bool
    # Its place by when it came.
    order_place: int

    @property
    def key(self) -> tuple[Any, ...]:
        """Its place in the order of matches."""
        return self[:6]

    @property
    def mark(self) -> int:
        """A short hash of what it is, by which a cursor finds it again."""
        return crc32(f"{self.conversation_id} {self.seq} {self.name}".encode()) & 0xFFFFFF

    @property
    def id(self) -> int | str:
        return int(self.name) if self.name.isdigit() else self.name


def places_given(best: Sequence[RankedMatch], given: int, mark: int) -> int:
    """How many of the matches come before the page that follows `given` of them.

    `mark` is of the last one given. If that is gone, so is its place.
    """
    marked = [place for place, each in enumerate(best, start=1) if each.mark == mark]
    return min(marked, key=lambda place: abs(place - given), default=max(0, given - 1))


@dataclass(frozen=True)
class Ranking:
    """Order what one query has found.

    `most`: so many places of messages are ranked by all that is known of them. `neighbours`: reads the messages at
    places. `newest`: the newest place, if what is new is marked up.
    """

    query: CompiledQuery
    weights: Weights
    most: int
    neighbours: Callable[[Collection[Place]], Iterable[Neighbour]]
    newest: int | None = None

    def of(self, found: Sequence[Hits]) -> tuple[list[RankedMatch], bool]:
        """Rank the matches of every clause, if there are enough; else those of any.

        Returns them best first, and whether they match any clause alone. A sentence always gets matches of any of its
        words: a long page holds all of them by chance, while the line that answers holds some.
        """
        parsed = self.query.parsed
        enough = 1 if parsed.is_one_word else math.inf if parsed.is_sentence else A_HANDFUL
        of_lcm = {hit.place for each in found for hit in each.hits if hit.is_of_lcm}
        repeated = {hit.place for each in found for hit in each.hits if self._is_repeated(hit, of_lcm)}
        complete_hits = (hit for each in found for hit in each.hits if hit.is_complete and not hit.is_of_lcm)
        is_settled = sum(hit.place not in repeated for hit in complete_hits) >= enough
        matches: list[RankedMatch] = []
        for each in found:
            if each.are_messages and not self.query.parsed.is_look_up:
                # What is of LCM neither lends nor borrows.
                matches += self._in_context([hit for hit in each.hits if not hit.is_of_lcm], repeated, is_settled)
                matches += self._each([hit for hit in each.hits if hit.is_of_lcm], is_settled)
            else:
                matches += self._each(each.hits, is_settled)
        complete = [each for each in matches if each.is_complete]
        is_relaxed = not is_settled and len(matches) > len(complete)
        best = matches if is_relaxed else complete
        if self.newest is not None:
            best = [each._replace(worth=fresher(each.worth, each.order_place, self.newest)) for each in best]
        return sorted(best, reverse=True), is_relaxed

    def _in_context(self, hits: Sequence[Hit], repeated: Collection[Place], is_settled: bool) -> list[RankedMatch]:
        """Messages and their neighbours by worth; settled, only complete ones."""
        own = {hit.place: hit for hit in hits}
        complete = {hit.place for hit in hits if hit.is_complete}
        worths = in_context(hits, self.weights)
        speakers = speakers_of(hits)
        for hit in hits:
            worths[hit.place] *= self.weights.of_speech(hit, speakers)
            if hit.place in repeated:
                worths[hit.place] *= REPEATED
        if not self.query.takes_neighbours:
            worths = {place: worth for place, worth in worths.items() if place in own}
        places = {
            *best_places(worths, self.most),
            *best_places({place: worths[place] for place in complete}, self.most),
        }
        if is_settled:
            places &= complete
        rows = self.neighbours(places) if self.query.takes_neighbours else [own[place] for place in places]
        matches = []
        for row in (row for row in rows if not row.is_of_lcm):
            worth = worths[row.place]
            if row.place not in own:
                worth *= self.weights.of_speech(row, speakers)
            matches.append(self._match(row, worth + self.weights.of_its_own(row), row.place in complete))
        return matches

    def _is_repeated(self, hit: Hit, of_lcm: Collection[Place]) -> bool:
        """Whether a message asks just what the query asks, and was looked up in LCM."""
        is_as_short = hit.tokens <= len(self.query.parsed.text) * TOKENS_A_CHARACTER
        asks = self.query.is_sentence and hit.is_complete and hit.answered_in is not None and is_as_short
        return asks and hit.place + 1 in of_lcm

    def _each(self, hits: Sequence[Hit], is_settled: bool) -> list[RankedMatch]:
        """Every hit by itself; settled, only those that are complete."""
        worth = by_keywords if self.query.parsed.is_look_up else alone
        kept = [hit for hit in hits if hit.is_complete or not is_settled]
        return [self._match(hit, worth(hit, self.weights), hit.is_complete) for hit in kept]

    def _match(self, row: Hit | Neighbour, worth: float, is_complete: bool) -> RankedMatch:
        is_first = is_complete and not self.query.is_sentence
        conversation_id, seq = conversation_of(row.place), seq_of(row.place)
        is_of_talk = not row.is_of_lcm
        return RankedMatch(is_of_talk, is_first, worth, conversation_id, seq, row.name, is_complete, row.order_place)
