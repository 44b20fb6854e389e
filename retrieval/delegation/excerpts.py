"""The pieces of what a grant reaches that say most about a question: what there is to show without a model."""

from __future__ import annotations

from collections.abc import Iterator

from conversations.sql import rows
from conversations.store.read import messages_of
from retrieval.delegation.extent import Extent
from retrieval.delegation.granted_search import matches_within
from retrieval.delegation.types import QueryExcerpt
from retrieval.engine import RetrievalEngine
from retrieval.slices import prefix_within
from retrieval.types import ItemKind, Match

MOST_EXCERPTS = 20
# The best may take half of the room, and each after it half of what is left: what is found first mostly says most, and
# many small pieces say nothing.
_SHARE, _LEAST = 2, 24
# Of a long text, so much of what is before the place that was found.
_BEFORE = 200

_TEXTS = "SELECT summary_id, content FROM summaries WHERE summary_id = ANY(%s)"


def excerpts_of(engine: RetrievalEngine, question: str, extent: Extent, *, room: int) -> tuple[QueryExcerpt, ...]:
    """The best of them, best first, in at most so many tokens; none if nothing says anything about it."""
    found = matches_within(engine, question, extent, limit=MOST_EXCERPTS)
    numbers = [int(match.id.removeprefix("msg_")) for match in found if match.kind is ItemKind.MESSAGE]
    texts = {message.id: message.content for message in messages_of(numbers)}
    texts |= dict(rows(_TEXTS, [[match.id for match in found if match.kind is ItemKind.SUMMARY]]))
    return tuple(_cut(engine, found, texts, room))


def _cut(engine: RetrievalEngine, found: tuple[Match, ...], texts: dict[str, str], room: int) -> Iterator[QueryExcerpt]:
    for match in found:
        share = max(room // _SHARE, min(room, _LEAST))
        if share < _LEAST:
            return
        text = texts[match.id]
        if match.token_count > share:
            text = text[max(0, match.snippet.offset - _BEFORE) :]
            text = text[: prefix_within(text, share, engine.tokens.count)]
        tokens = engine.tokens.count(text)
        room -= tokens
        yield QueryExcerpt(
            id=match.id,
            kind=match.kind,
            conversation_id=match.conversation_id,
            first_seq=match.first_seq,
            last_seq=match.last_seq,
            text=text,
            tokens=tokens,
            complete=text == texts[match.id],
            role=match.role,
        )
