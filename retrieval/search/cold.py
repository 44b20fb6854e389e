"""Search the texts in cold storage, newest first, within the time limit.

These texts are in no index. The filters apply to their rows, as in other searches. The texts are then decompressed
block by block, and PostgreSQL matches them, so that words and expressions match as in any other search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, groupby

from django.db import DataError

from conversations.cold_storage.cold_texts import ColdTexts, until_settled
from conversations.sql import load, rows
from retrieval.search.filters import MESSAGE_RANK, MESSAGES, Filters
from retrieval.search.patterns.pattern_search import invalid_pattern
from retrieval.search.patterns.pattern_translation import Pattern
from retrieval.search.prepare import Deadline
from retrieval.search.query.compiled_query import CompiledQuery
from retrieval.search.request import BEGINNING, Found, FoundRow, Position
from retrieval.search.snippets import Needles, around, snippet
from retrieval.types import Snippet

_SQL = load("retrieval/search/cold.sql")

# Rows are read _AT_ONCE at a time. Their texts are decompressed and matched in portions of about _PORTION characters,
# which are estimated from their tokens.
_AT_ONCE = 5000
_PORTION = 1_000_000
_CHARACTERS_A_TOKEN = 4
# When less than this share of the time limit is left, the page ends, and its cursor continues the search. So there is
# enough time left to finish the page.
_SHARE = 0.5

_IN_PARTS = "Only some of the cold messages could be searched in time: the cursor continues with the older ones."

# The id of a message, its sort position, its cold block, and its tokens.
_Row = tuple[int, int, int, int]


@dataclass(frozen=True)
class ColdSearch:
    """Searches cold messages; use it within `prepare.bounded`."""

    filters: Filters
    limit: int
    deadline: Deadline
    position: Position = BEGINNING
    texts: ColdTexts = field(default_factory=ColdTexts)

    def by_words(self, query: CompiledQuery) -> Found:
        """Find the next messages after the position that contain all of the words."""
        tsquery, needles = query.for_every_clause().query, Needles.of(query.rarities)

        def matching(texts: Sequence[str]) -> dict[int, Snippet]:
            places = rows(_SQL["texts_with_words"], {"texts": list(texts), "query": tsquery})
            return {place - 1: snippet(texts[place - 1], needles) for (place,) in places}

        return until_settled(lambda: self._walk(matching))

    def by_pattern(self, pattern: Pattern) -> Found:
        """Find the next messages after the position that an expression matches."""

        def matching(texts: Sequence[str]) -> dict[int, Snippet]:
            try:
                found = rows(_SQL["texts_with_pattern"], {"texts": list(texts), "pattern": pattern.expression})
            except DataError as error:
                raise invalid_pattern(error) from error
            return {place - 1: around(texts[place - 1], begin - 1, end - 1, offset=0) for place, begin, end in found}

        return until_settled(lambda: self._walk(matching))

    def _walk(self, matching: Callable[[Sequence[str]], Mapping[int, Snippet]]) -> Found:
        found: list[FoundRow] = []
        for portion in self._portions():
            snippets = matching([text for _, _, text in portion])
            found += [FoundRow(*portion[each][:2], MESSAGE_RANK, snippets[each]) for each in sorted(snippets)]
            if len(found) >= self.limit:
                break
            if self.deadline.remaining_ms() < self.deadline.milliseconds * _SHARE:
                return _page(found, searched_to=portion[-1][1])
            self.deadline.impose()
        return _page(found[: self.limit])

    def _portions(self) -> Iterator[list[tuple[int, int, str]]]:
        """Yield portions of the messages after the position: id, sort position and text."""
        place = self.filters.place(MESSAGES)
        statement = _SQL["newest_cold_messages"].format(place=place, where=self.filters.where(MESSAGES, by_words=False))
        upto = self.filters.high_before(self.position.key)
        while batch := rows(statement, {**self.filters.values, "upto": upto, "at_once": _AT_ONCE}):
            for portion in _in_portions(batch):
                yield self._unpacked(portion)
            if len(batch) < _AT_ONCE:
                return
            upto = batch[-1][1] - 1

    def _unpacked(self, portion: Sequence[_Row]) -> list[tuple[int, int, str]]:
        """Read the texts of a portion, with one read of all their blocks."""
        needed = {block_id for _, _, block_id, _ in portion}
        # Blocks are in the order of messages. So blocks of earlier portions are not needed again, and are freed.
        for through in self.texts.blocks.keys() - needed:
            del self.texts.blocks[through]
        self.texts.read(needed)
        return [
            (message_id, order_place, self.texts.message(block_id, message_id).content)
            for message_id, order_place, block_id, _ in portion
        ]


def _page(found: Sequence[FoundRow], searched_to: int | None = None) -> Found:
    """The matches, newest first; if given, the search stopped at `searched_to`."""
    ends_at = Position((searched_to,)) if searched_to is not None else None
    return Found(
        found,
        lambda place: Position((found[place].order_place,)),
        ends_at=ends_at,
        bounded=ends_at is not None,
        note=_IN_PARTS if ends_at is not None else None,
    )


def _in_portions(batch: Sequence[_Row]) -> Iterator[list[_Row]]:
    sizes = accumulate(tokens * _CHARACTERS_A_TOKEN for *_, tokens in batch)
    for _, portion in groupby(zip(batch, sizes, strict=True), key=lambda each: each[1] // _PORTION):
        yield [row for row, _ in portion]
