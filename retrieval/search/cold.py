"""Searches the texts that have gone cold, the newest first, for as long as a search may take.

No index knows them. Which messages are within reach is still told by their rows; their texts are unpacked, block after
block, and given to PostgreSQL to match, so that words and expressions mean here what they mean everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from django.db import DataError

from conversations.cold_storage.cold_texts import ColdTexts, until_settled
from conversations.sql import rows
from retrieval.limits import Deadline
from retrieval.search.filters import Reach
from retrieval.search.meanings import Understood
from retrieval.search.ordering import Spot
from retrieval.search.patterns.pattern_search import invalid_pattern
from retrieval.search.patterns.pattern_translation import Pattern
from retrieval.search.relevance import ranking
from retrieval.search.searchables import MESSAGE_RANK, MESSAGES
from retrieval.search.snippets import Needles, around, snippet
from retrieval.types import Snippet

# So many rows are looked up at a time; their texts are unpacked and matched in portions of about so many characters, by
# what their tokens come to.
_AT_ONCE = 5000
_PORTION = 1_000_000
_CHARACTERS_A_TOKEN = 4
# Of the time of a search, this share may go by before it is left where it is and a cursor leads on: what is under way
# then still has time to end.
_SHARE = 0.5

_NEWEST = """
    SELECT message_id, {place}, cold_block_id, token_count FROM messages
    WHERE {where} AND cold_block_id IS NOT NULL AND {place} <= %(upto)s
    ORDER BY {place} DESC LIMIT {at_once}
"""
_BY_WORDS = """
    SELECT place FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS given(text, place)
    WHERE lcm_tsv(text) @@ %(query)s::tsquery
"""
_BY_PATTERN = """
    SELECT place, regexp_instr(text, %(pattern)s), regexp_instr(text, %(pattern)s, 1, 1, 1)
    FROM unnest(%(texts)s::text[]) WITH ORDINALITY AS given(text, place)
    WHERE text ~ %(pattern)s
"""


# Of a message: its id and place, its block, and its tokens.
_Row = tuple[int, int, int, int]


@dataclass(frozen=True)
class ColdFound:
    """What was found, the newest first. `looked_to`: the search was left at this place, for its time was over."""

    spots: tuple[Spot, ...]
    looked_to: int | None = None


@dataclass(frozen=True)
class ColdSearch:
    """Looks through the cold messages within reach. Call it within `limits.bounded`."""

    reach: Reach
    limit: int
    deadline: Deadline
    texts: ColdTexts = field(default_factory=ColdTexts)

    def by_words(self, asked: Understood, *, before: int | None = None) -> ColdFound | None:
        """Messages that hold all of the words, behind a place; None if there is no word that could be looked for."""
        how = asked.how
        if how is None:
            return None
        chosen = how.for_every_clause()
        size = self.reach.rows
        needles = Needles.of(
            {each: ranking.rarity(found=how.expected.get(each, 0.0), among=size) for each in how.lexemes}
        )

        def found_in(texts: Sequence[str]) -> dict[int, Snippet]:
            found = rows(_BY_WORDS, {"texts": list(texts), "query": chosen.query})
            return {place - 1: snippet(texts[place - 1], needles) for (place,) in found}

        return until_settled(lambda: self._walk(found_in, before))

    def by_pattern(self, pattern: Pattern, *, before: int | None = None) -> ColdFound:
        """Messages that a regular expression matches, behind a place; Invalid if it is not a valid one."""

        def found_in(texts: Sequence[str]) -> dict[int, Snippet]:
            try:
                found = rows(_BY_PATTERN, {"texts": list(texts), "pattern": pattern.expression})
            except DataError as error:
                raise invalid_pattern(error) from error
            return {place - 1: around(texts[place - 1], begin - 1, end - 1, offset=0) for place, begin, end in found}

        return until_settled(lambda: self._walk(found_in, before))

    def _walk(self, found_in: Callable[[Sequence[str]], Mapping[int, Snippet]], before: int | None) -> ColdFound:
        spots: list[Spot] = []
        for portion in self._portions(before):
            found = found_in([text for _, _, text in portion])
            spots += [Spot(*portion[each][:2], MESSAGE_RANK, found[each]) for each in sorted(found)]
            if len(spots) >= self.limit:
                break
            if self.deadline.remaining_ms() < self.deadline.milliseconds * _SHARE:
                return ColdFound(tuple(spots), looked_to=portion[-1][1])
            self.deadline.impose()
        return ColdFound(tuple(spots[: self.limit]))

    def _portions(self, before: int | None) -> Iterator[list[tuple[int, int, str]]]:
        """Ids, places and texts of the cold messages behind a place, the newest first, some at a time."""
        place = self.reach.place(MESSAGES)
        statement = _NEWEST.format(place=place, where=self.reach.where(MESSAGES), at_once=_AT_ONCE)
        upto = self.reach.high if before is None else before - 1
        while batch := rows(statement, {**self.reach.values, "upto": upto}):
            for portion in _in_portions(batch):
                yield self._unpacked(portion)
            if len(batch) < _AT_ONCE:
                return
            upto = batch[-1][1] - 1

    def _unpacked(self, portion: Sequence[_Row]) -> list[tuple[int, int, str]]:
        """The portion with its texts, their blocks read in one go."""
        needed = {block_id for _, _, block_id, _ in portion}
        # Blocks lie behind each other: those before are through, and memory stays flat.
        for through in self.texts.blocks.keys() - needed:
            del self.texts.blocks[through]
        self.texts.read(needed)
        return [
            (message_id, order_place, self.texts.message(block_id, message_id).content)
            for message_id, order_place, block_id, _ in portion
        ]


def _in_portions(batch: Sequence[_Row]) -> Iterator[list[_Row]]:
    portion: list[_Row] = []
    characters = 0
    for row in batch:
        portion.append(row)
        characters += row[3] * _CHARACTERS_A_TOKEN
        if characters >= _PORTION:
            yield portion
            portion, characters = [], 0
    if portion:
        yield portion
