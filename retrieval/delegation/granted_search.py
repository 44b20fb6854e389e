"""Searches for what a question is about: what leave to read it should be for, and then within that leave."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from conversations.errors import Invalid
from conversations.sql import array, rows
from retrieval.delegation.extent import Extent
from retrieval.engine import RetrievalEngine
from retrieval.ids import named
from retrieval.types import GrepScope, ItemKind, Match

# A message alone seldom answers anything: of one that is raw, so many before and behind it are read, too.
_NEIGHBOURS = 2

# Of each search, so many matches are looked through for what is within; and beyond so many searches, one for all.
_MOST_LOOKED_AT, _MOST_SEARCHES = 50, 8

_SPANS = """
    SELECT conversation_id, min(seq), max(seq) FROM messages WHERE message_id = ANY(%s) GROUP BY conversation_id
"""
# For each message: the summary that was made from it, the newest where it was made again; else the raw ones beside it.
_ROUND = f"""
    SELECT m.message_id, held.summary_id, near.message_id
    FROM unnest(%s::bigint[]) WITH ORDINALITY AS found(message_id, place)
    JOIN messages m ON m.message_id = found.message_id
    LEFT JOIN LATERAL (
        SELECT l.summary_id FROM summary_messages l
        WHERE l.message_id = m.message_id
          AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = l.summary_id)
        ORDER BY l.summary_id LIMIT 1
    ) AS held ON true
    LEFT JOIN messages near ON held.summary_id IS NULL AND near.conversation_id = m.conversation_id
         AND near.seq BETWEEN m.seq - {_NEIGHBOURS} AND m.seq + {_NEIGHBOURS}
         AND NOT EXISTS (SELECT FROM summary_messages l WHERE l.message_id = near.message_id)
    ORDER BY found.place, near.seq
"""


def to_be_read(found: Sequence[Match]) -> list[str]:
    """What to give leave to read for these matches: the summaries, and of messages what they stand among."""
    numbers = [int(match.id.removeprefix("msg_")) for match in found if match.kind is ItemKind.MESSAGE]
    around: dict[str, list[str]] = {}
    for message_id, summary_id, near_id in rows(_ROUND, [array(numbers)]) if numbers else []:
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
    for conversation_id, first, last in rows(_SPANS, [array(extent.messages)]) if extent.messages else []:
        yield {"conversation_id": conversation_id, "scope": GrepScope.MESSAGES, "from_seq": first, "to_seq": last}
