"""Searches for what a question is about: what leave to read it should be for, and then within that leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conversations.errors import Invalid
from conversations.sql import array, load, rows
from retrieval.delegation.extent import Extent
from retrieval.engine import RetrievalEngine
from retrieval.ids import named
from retrieval.types import GrepScope, ItemKind, Match

# A message alone seldom answers anything: of one that is raw, so many before and behind it are read, too.
_NEIGHBOURS = 2

# Of each search, so many matches are looked through for what is within; and beyond so many searches, one for all.
_MOST_LOOKED_AT, _MOST_SEARCHES = 50, 8

_SQL = load("retrieval/delegation.sql")


def to_be_read(found: Sequence[Match]) -> list[str]:
    """What to give leave to read for these matches: the summaries, and of messages what they stand among."""
    numbers = [int(match.id.removeprefix("msg_")) for match in found if match.kind is ItemKind.MESSAGE]
    around: dict[str, list[str]] = {}
    values = {"messages": array(numbers), "neighbours": _NEIGHBOURS}
    for message_id, summary_id, near_id in rows(_SQL["around_messages"], values) if numbers else []:
        around.setdefault(f"msg_{message_id}", []).append(summary_id or f"msg_{near_id}")
    return list(dict.fromkeys(id for match in found for id in around.get(match.id, [match.id])))


def matches_within(engine: RetrievalEngine, query: str, extent: Extent, *, limit: int) -> tuple[Match, ...]:
    """The best matches that the grant reaches, by grep's own ranking; none for what cannot be searched for."""
    found: dict[str, Match] = {}
    for narrowed in _searches(extent):
        try:
            result = engine.grep(
                query=query[: engine.policy.max_query_length],
                limit=min(_MOST_LOOKED_AT, engine.policy.max_grep_results),
                **narrowed,
            )
        except Invalid:
            continue
        found |= {match.id: match for match in result.matches}
    allowed = extent.within([each for each in map(named, found) if each is not None])
    best = sorted((found[id] for id in allowed), key=lambda match: (-match.score, match.first_seq))
    return tuple(best[:limit])


def _searches(extent: Extent) -> Iterator[dict[str, Any]]:
    """Where to search, so that little else is found than what is within the grant."""
    conversations = extent.conversations()
    if len(extent.roots) > _MOST_SEARCHES:
        yield from ({"conversation_id": each, "scope": GrepScope.BOTH} for each in conversations)
        return
    # What is below a summary does not include itself.
    if extent.roots:
        yield from ({"conversation_id": each, "scope": GrepScope.SUMMARIES} for each in conversations)
    yield from ({"under": root, "scope": GrepScope.BOTH} for root in extent.roots)
    for conversation_id, first, last in rows(_SQL["widest_spans"], [array(extent.messages)]) if extent.messages else []:
        yield {"conversation_id": conversation_id, "scope": GrepScope.MESSAGES, "from_seq": first, "to_seq": last}
