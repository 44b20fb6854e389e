"""Find the items that a grant covers: the items it names and their sources."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

from conversations.errors import Invalid
from conversations.sql import array, load, rows
from retrieval.engine import RetrievalEngine
from retrieval.ids import Named, named
from retrieval.types import GrepScope, ItemKind, Match

# A grant for a raw message covers this many messages before and after it: one alone seldom answers a question.
_NEIGHBOURS = 2

# The maximum number of matches of one search, and the maximum number of summaries that are searched one by one.
_MOST_LOOKED_AT, _MOST_SEARCHES = 50, 8

_SQL = load("retrieval/delegation.sql")


@dataclass(frozen=True)
class Extent:
    """The readable items: messages, and summaries with their level below the named."""

    roots: tuple[str, ...]
    depth: int
    levels: Mapping[str, int]
    messages: frozenset[int]

    @classmethod
    def of(cls, item_ids: Sequence[str], *, depth: int) -> Extent:
        """Find the extent of these summaries and messages, `depth` levels down."""
        known = [found for found in map(named, item_ids) if found is not None]
        roots = tuple(each.id for each in known if each.kind is ItemKind.SUMMARY)
        found = rows(_SQL["summaries_within"], {"roots": list(roots), "depth": depth}) if roots else []
        messages = frozenset(each.number for each in known if each.kind is ItemKind.MESSAGE)
        return cls(roots=roots, depth=depth, levels=dict(found), messages=messages)

    def levels_left(self, summary_id: str) -> int:
        """The number of levels below this summary that may be opened; -1 if not covered."""
        level = self.levels.get(summary_id)
        return -1 if level is None else self.depth - level

    def within(self, ids: Collection[Named]) -> frozenset[str]:
        """Return the ids that exist and may be read."""
        found = {each.id for each in ids if each.kind is ItemKind.SUMMARY and each.id in self.levels}
        wanted = {each.number for each in ids if each.kind is ItemKind.MESSAGE and each.number < 2**63}
        held = self.messages & wanted
        if wanted - held:
            held |= {row[0] for row in rows(_SQL["messages_of_summaries"], [array(wanted - held), self._opened()])}
        return frozenset(found | {f"msg_{number}" for number in held})

    def conversations(self) -> list[int]:
        """The ids of the conversations of the named summaries and messages."""
        return [row[0] for row in rows(_SQL["conversations"], [array(self.messages), list(self.roots)])]

    def spans(self) -> list[tuple[int, int, int]]:
        """The ranges of named messages: conversation id, first and last seq."""
        return [(id, first, last) for id, first, last in rows(_SQL["spans"], [array(self.messages)])]

    def tokens_below(self) -> int:
        """The number of tokens of all items below the named summaries, and of messages."""
        below = [summary_id for summary_id, level in self.levels.items() if level > 0]
        values = {"below": below, "messages": array(self.messages), "opened": self._opened()}
        return int(rows(_SQL["tokens_below"], values)[0][0])

    def _opened(self) -> list[str]:
        """The ids of the summaries whose messages may be read."""
        return [summary_id for summary_id, level in self.levels.items() if level < self.depth]


def to_be_read(found: Sequence[Match]) -> list[str]:
    """Choose the ids that a grant for these matches names.

    For a message, this is the summary made from it. If there is none, these are the message and its neighbours.
    """
    numbers = [int(match.id.removeprefix("msg_")) for match in found if match.kind is ItemKind.MESSAGE]
    around: dict[str, list[str]] = {}
    values = {"messages": array(numbers), "neighbours": _NEIGHBOURS}
    for message_id, summary_id, near_id in rows(_SQL["around_messages"], values) if numbers else []:
        around.setdefault(f"msg_{message_id}", []).append(summary_id or f"msg_{near_id}")
    return list(dict.fromkeys(id for match in found for id in around.get(match.id, [match.id])))


def matches_within(engine: RetrievalEngine, query: str, extent: Extent, *, limit: int) -> tuple[Match, ...]:
    """Search the texts of the grant; return the best matches, best first.

    Scores of several searches cannot be compared. So matches are in the order of a search of all conversations. Those
    that only narrower searches find follow, in turn from each search.
    """
    pages: list[tuple[Match, ...]] = []
    for narrowed in _searches(extent):
        try:
            result = engine.grep(
                query=query[: engine.policy.max_query_length],
                limit=min(_MOST_LOOKED_AT, engine.policy.max_grep_results),
                **narrowed,
            )
        except Invalid:
            continue
        pages.append(result.matches)
    in_turn = chain.from_iterable(zip_longest(*pages[1:]))
    found = {match.id: match for match in (*chain(*pages[:1]), *in_turn) if match is not None}
    allowed = extent.within([each for each in map(named, found) if each is not None])
    return tuple(match for match in found.values() if match.id in allowed)[:limit]


def _searches(extent: Extent) -> Iterator[dict[str, Any]]:
    """Yield filters: all conversations of the grant, then parts with few other items."""
    conversations = extent.conversations()
    yield {"conversation_ids": conversations, "scope": GrepScope.BOTH}
    if len(extent.roots) > _MOST_SEARCHES:
        yield from ({"conversation_id": each, "scope": GrepScope.BOTH} for each in conversations)
        return
    # A search `under` a summary does not include the summary itself.
    if extent.roots:
        yield {"conversation_ids": conversations, "scope": GrepScope.SUMMARIES}
    yield from ({"under": root, "scope": GrepScope.BOTH} for root in extent.roots)
    for conversation_id, first, last in rows(_SQL["widest_spans"], [array(extent.messages)]) if extent.messages else []:
        yield {"conversation_id": conversation_id, "scope": GrepScope.MESSAGES, "from_seq": first, "to_seq": last}
