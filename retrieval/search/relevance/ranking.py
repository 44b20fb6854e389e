"""Rank what a search has found by a score like BM25, with context; no I/O.

    score = (sum over terms of idf * tf / (tf + k) + block score) * speaker prior + bonuses for author, date and time

A term is a lexeme, or a proximity term (adjacent lexemes). `tf` is the frequency of a term in the message, divided by a
length normalization, plus shares of its tf in neighbours. In a conversation, the question has the words and the answer
has the fact. So a message gets a share of the tf of the two messages before and after it, and all of the tf of a
question that it answers. These are added before the saturation, so that no term counts several times. The block score
is the same sum for the block of messages around it. In a long message, terms outside of its best passage have less
weight. If one role writes shorter messages, it gets a greater prior. No weight is critical: see docs/figures.md.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import NamedTuple

from retrieval.search.query.compiled_query import CompiledQuery
from retrieval.search.query.parser import Dates
from retrieval.search.relevance.hits import Hit, Hits, Neighbour, Place

# The share of a hit's tf that a neighbour gets, by its offset from the hit. An answer need not repeat the words of its
# question, so the message that answers a hit gets all of its tf. A message before a question does not answer it, so it
# gets less. `make eval ARGS="--only retrieval"` gives nDCG@10 0.686; with 0.6 instead of 1.0 for an answer 0.678, and
# with the same share before a question as elsewhere 0.683.
_AROUND = {1: 0.2, -1: 0.2, 2: 0.2, -2: 0.2}
_AROUND_A_QUESTION = {1: 0.2, -1: 0.1, 2: 0.2, -2: 0.1}
_ANSWER = 1.0
# The share of an answer if the query asks for a time: then a message that ends with a question may itself state it.
_ANSWER_TO_WHEN = 0.4
# The bonus of a message that states a time, such as `yesterday` or `in June`, if the query asks for a time.
_TELLS_WHEN_WEIGHT = 0.5
# The penalty of a message with a question, if the query is a sentence: it seldom has the answer to a similar question.
_ASKING_COSTS = 0.5
# The factor for a hit that only repeats the query, which an agent then looked up in LCM. Such a hit has at most
# TOKENS_A_CHARACTER tokens for each character of the query.
REPEATED, TOKENS_A_CHARACTER = 0.3, 0.5
# The saturation k in tf / (tf + k).
SATURATION = 0.5
# A block has STRETCH messages. The tf of both adjacent blocks is added with weight BESIDE_A_STRETCH, so that borders of
# blocks matter less. The block score has a saturation of its own, and STRETCH_WEIGHT in the score of a message.
STRETCH, BESIDE_A_STRETCH, STRETCH_WEIGHT, STRETCH_SATURATION = 8, 0.7, 0.2, 1.0
# The bonus of a message by an author whom the query names: about as much as one more rare word.
AUTHOR_WEIGHT = 2.0
DATE_WEIGHT = 1.0
# Length normalization begins at this number of tokens: a long tool output has many words by chance, and its neighbours
# would get them, too. It does not apply to the tf of proximity terms, because they seldom occur by chance.
LONG = 100
_LENGTH_WEIGHT = 1.0
# The length normalization in SQL, for choosing the hits that are ranked in context.
LENGTH_COST_SQL = f"(1 + {_LENGTH_WEIGHT}::float8 * ln(greatest(1, token_count / {LONG}::float8)))"

# The weight of a lexeme outside of the best passage of a long text.
OUTSIDE = 0.3
# The speaker prior. A short message states a fact; the long message that answers it repeats its words and adds others.
# So a role with at least ENOUGH hits has the prior r ** BRIEFNESS, if its messages are on average r times as short as
# those of all roles (geometric means). Ratios up to ALIKE make no difference, and greater ones are divided by it.
BRIEFNESS, ALIKE, ENOUGH = 0.25, 1.4, 3
# The weight of length in the final factor of a message, for every role: 1 / (1 + PAGE_COSTS * ln(tokens / LONG)).
PAGE_COSTS = 0.2

# The factor for a message of a user that states a standing instruction, such as `always add tests`, or a preference, if
# the speaker prior of users is above 1. It is stated once and applies to later requests, which have few of its words.
_INSTRUCTION = 1.2

# The factor for a message of a user in a look-up of an identifier: users name it once, tools and code repeat it.
_BY_A_USER = 1.2

# If fewer texts than this contain every word, texts with any of the words are returned, too.
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
    """The weight (idf) of each term, and other criteria of the query."""

    rarity: Sequence[float]
    names: frozenset[str] = frozenset()
    dates: Dates = field(default_factory=Dates)
    is_sentence: bool = False
    asks_when: bool = False
    # If the query has an identifier, any text with it is relevant, so long texts get no lower prior.
    names_identifier: bool = False
    # The number of proximity terms, which are the last terms.
    in_a_row: int = 0
    # The weight of length in the prior of a message.
    page_costs: float = PAGE_COSTS

    @cached_property
    def words(self) -> int:
        """The number of lexemes, which are the first terms."""
        return len(self.rarity) - self.in_a_row

    def of_its_own(self, row: Neighbour | Hit) -> float:
        """The bonuses of a message for its author, its date, and a time it states."""
        worth = 0.0
        if row.author is not None and not self.names.isdisjoint(names_in(row.author)):
            worth += AUTHOR_WEIGHT
        if row.created_at is not None and self.dates:
            worth += DATE_WEIGHT * self.dates.information_in(row.created_at)
        if isinstance(row, Neighbour) and row.tells_when:
            worth += _TELLS_WHEN_WEIGHT
        return worth

    def of_speech(self, row: Neighbour | Hit, speakers: Mapping[tuple[int, str | None], float]) -> float:
        """The prior of a message: a factor that depends on its role and its length."""
        if self.names_identifier:
            return 1.0
        page = 1 + self.page_costs * math.log(row.tokens / LONG) if row.tokens > LONG else 1.0
        return speakers.get((conversation_of(row.place), row.role), 1.0) / page

    @property
    def may_be_instructed(self) -> bool:
        """Whether standing instructions get a higher prior."""
        return self.is_sentence and not self.asks_when

    def of_instruction(self, row: Neighbour | Hit, speakers: Mapping[tuple[int, str | None], float]) -> float:
        """The factor of a standing instruction: see _INSTRUCTION."""
        is_instruction = isinstance(row, Neighbour) and row.instructs
        return _INSTRUCTION if is_instruction and speakers.get((conversation_of(row.place), row.role), 1.0) > 1 else 1.0


# Cached, because hundreds of messages have only a few authors.
@lru_cache(maxsize=256)
def names_in(text: str) -> frozenset[str]:
    """The words of a text, normalized for the comparison of names."""
    words = (word.strip(".,;:!?\"'()[]").casefold() for word in text.replace("’", "'").split())
    return frozenset(word.removesuffix("'s") for word in words if word)


def length_cost(tokens: int) -> float:
    """The length normalization: the divisor of the tf in a text of this length."""
    return 1 + _LENGTH_WEIGHT * math.log(tokens / LONG) if tokens > LONG else 1.0


def speakers_of(hits: Iterable[Hit]) -> dict[tuple[int, str | None], float]:
    """The speaker prior of each role in each conversation: see BRIEFNESS."""
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
    """The score of a hit in a look-up of an identifier: the sum of idf * tf."""
    worth = 0.0
    for rarity, share in zip(weights.rarity, hit.shares, strict=False):
        worth += rarity * share
    return worth * _BY_A_USER if hit.role == "user" else worth


def alone(hit: Hit, weights: Weights) -> float:
    """The score of a text without neighbours, such as a summary: as in BM25."""
    rarity, words, worth = weights.rarity, weights.words, 0.0
    cost = length_cost(hit.tokens)
    for term, share in enumerate(hit.shares):
        if term < words:
            share /= cost
        worth += rarity[term] * share / (share + SATURATION)
    return worth


def in_context(hits: Collection[Hit], weights: Weights) -> dict[Place, float]:
    """The score of each position at or near the hits, without priors and bonuses.

    The result may have positions before the first or after the last message of a conversation.
    """
    held: dict[int, dict[Place, float]] = defaultdict(lambda: defaultdict(float))
    stretches: dict[int, dict[Place, float]] = defaultdict(lambda: defaultdict(float))
    words = weights.words
    answer = _ANSWER_TO_WHEN if weights.asks_when else _ANSWER
    offsets: dict[int | None, dict[int, float]] = {None: _AROUND, 0: _AROUND_A_QUESTION}
    # The length normalization of a long hit also divides the tf from neighbours: if relevant, it has the words itself.
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
    """Add to the tf of each block in `where` the weighted tf of the adjacent blocks."""
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
    """The score of each position: the sum of idf * tf / (tf + k) over the terms."""
    worths: dict[Place, float] = {}
    so_far = worths.get
    for term, shares in held.items():
        rarity = weights.rarity[term]
        for place, share in shares.items():
            worths[place] = so_far(place, 0.0) + rarity * share / (share + saturation)
    return worths


def fresher(worth: float, place: int, newest: int) -> float:
    """Multiply a score by a recency factor, from 1 (oldest) to 2 (newest message).

    The factor decreases with the logarithm of the age: half of the bonus is lost when the age, in messages, is the
    square root of the number of all messages. The maximum is 2, so that neither recency nor relevance decides alone: of
    two equal scores the newer message is first, and a message with more than twice the score is first at any age.
    """
    freshness = 1 - math.log1p(max(0, newest - place)) / math.log1p(newest) if newest > 0 else 1.0
    return worth * (1 + max(0.0, freshness))


def best_places(worths: Mapping[Place, float], most: int) -> list[Place]:
    """The positions with the greatest scores, best first."""
    return [place for place, _ in sorted(worths.items(), key=itemgetter(1), reverse=True)[:most]]


class RankedMatch(NamedTuple):
    """A match and its score.

    The greatest tuple comes first; its first six fields are unique.
    """

    # False for calls of LCM's tools and their results. These come after all other matches.
    is_of_talk: bool
    # Whether it comes before matches without this flag: it matches every clause of a query that is no sentence.
    is_first: bool
    worth: float
    conversation_id: int
    seq: int
    # The number of a message, or the id of a summary or a file.
    name: str
    # Whether it matches every clause of the query.
    is_complete: bool
    # The position in the order of recording.
    order_place: int

    @property
    def id(self) -> int | str:
        return int(self.name) if self.name.isdigit() else self.name


@dataclass(frozen=True)
class Ranking:
    """Ranks the hits of one query.

    `most` is the number of positions of messages that are ranked by all criteria. `neighbours` reads the messages at
    positions. `newest` is the newest position, if newer messages get a recency factor.
    """

    query: CompiledQuery
    weights: Weights
    most: int
    neighbours: Callable[[Collection[Place]], Iterable[Neighbour]]
    newest: int | None = None

    def of(self, found: Sequence[Hits]) -> tuple[list[RankedMatch], bool]:
        """Rank the matches of every clause, if there are enough; otherwise of any clause.

        Returns the matches, best first, and whether one clause was enough for a match. For a sentence, one always is,
        because a long text has all of its words by chance, while the short text that answers it has only some.
        """
        parsed = self.query.parsed
        enough = 1 if parsed.is_one_word else math.inf if parsed.is_sentence else A_HANDFUL
        of_lcm = {hit.place for each in found for hit in each.hits if hit.is_of_lcm}
        repeated = {hit.place for each in found for hit in each.hits if of_lcm and self._is_repeated(hit, of_lcm)}
        complete_hits = (hit for each in found for hit in each.hits if hit.is_complete and not hit.is_of_lcm)
        is_settled = sum(hit.place not in repeated for hit in complete_hits) >= enough
        matches: list[RankedMatch] = []
        for each in found:
            if each.are_messages and not self.query.parsed.is_look_up:
                # Calls of LCM's tools and their results neither give tf to neighbours nor get any from them.
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
        """Score messages with their neighbours; if `is_settled`, only complete ones."""
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
            worth *= self.weights.of_instruction(row, speakers)
            matches.append(self._match(row, worth + self.weights.of_its_own(row), row.place in complete))
        return matches

    def _is_repeated(self, hit: Hit, of_lcm: Collection[Place]) -> bool:
        """Whether a message asks the same as the query, and an agent looked it up in LCM."""
        is_as_short = hit.tokens <= len(self.query.parsed.text) * TOKENS_A_CHARACTER
        asks = self.query.is_sentence and hit.is_complete and hit.answered_in is not None and is_as_short
        return asks and hit.place + 1 in of_lcm

    def _each(self, hits: Sequence[Hit], is_settled: bool) -> list[RankedMatch]:
        """Score each hit without neighbours; if `is_settled`, only complete ones."""
        worth = by_keywords if self.query.parsed.is_look_up else alone
        kept = [hit for hit in hits if hit.is_complete or not is_settled]
        return [self._match(hit, worth(hit, self.weights), hit.is_complete) for hit in kept]

    def _match(self, row: Hit | Neighbour, worth: float, is_complete: bool) -> RankedMatch:
        is_first = is_complete and not self.query.is_sentence
        conversation_id, seq = conversation_of(row.place), seq_of(row.place)
        is_of_talk = not row.is_of_lcm
        return RankedMatch(is_of_talk, is_first, worth, conversation_id, seq, row.name, is_complete, row.order_place)
