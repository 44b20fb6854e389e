"""Says what an id names: enough to decide whether to open it, and what that would cost."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from conversations.errors import NotFound
from conversations.frozen import record
from conversations.models import LargeFile, Message, Summary
from conversations.reading import rows
from conversations.scope import Scope
from conversations.types import Level, Role, SummaryKind
from retrieval.types import Description, ItemKind, MessageSpan, SummaryOutline

MOST_IN_MANIFEST = 50
_KINDS = {kind.value: kind for kind in SummaryKind}
_LEVELS = {level.value: level for level in Level}

_ID = re.compile(
    r"(?<![A-Za-z0-9_])(?:(?P<summary>sum_\w+)|(?P<file>file_\w+)|msg_(?P<message>\d{1,19}))(?![A-Za-z0-9_])"
)

# Times come as text: the driver, as Django has set it up, takes ten times as long over them.
# To open a summary is to read the texts of its sources. What a leaf stands for are its sources; of a condensed one, the
# messages that are sources themselves are what it stands for beyond what its source summaries do.
_OUTLINE = """
    SELECT s.summary_id, s.kind::text, s.depth, s.token_count,
           s.source_tokens + coalesce((
               SELECT sum(c.token_count - c.source_tokens)
               FROM summary_parents p JOIN summaries c ON c.summary_id = p.parent_summary_id
               WHERE p.summary_id = s.summary_id
           ), 0)::bigint,
           s.first_seq, s.last_seq, s.earliest_at::text, s.latest_at::text, s.descendant_count, s.level,
           NOT EXISTS (SELECT FROM summary_parents p WHERE p.parent_summary_id = s.summary_id)
           AND NOT EXISTS (SELECT FROM summaries later WHERE later.supersedes_id = s.summary_id), kin.distance
"""
# The limit ends the recursion: no more of a large subtree is walked than is shown.
_OF_SUMMARY = f"""
    WITH RECURSIVE below AS (
        SELECT %(summary_id)s::text AS summary_id, 0 AS distance
        UNION
        SELECT p.parent_summary_id, below.distance + 1
        FROM below JOIN summary_parents p ON p.summary_id = below.summary_id
    ), above AS (
        SELECT %(summary_id)s::text AS summary_id, 0 AS distance
        UNION
        SELECT p.summary_id, above.distance - 1
        FROM above JOIN summary_parents p ON p.parent_summary_id = above.summary_id
    ), kin AS (
        (SELECT * FROM below LIMIT {MOST_IN_MANIFEST + 2})
        UNION ALL
        (SELECT * FROM above WHERE distance < 0 LIMIT {MOST_IN_MANIFEST})
    ), islands AS (
        SELECT min(seq) AS first_seq, max(seq) AS last_seq
        FROM (
            SELECT m.seq, m.seq - row_number() OVER (ORDER BY m.seq) AS island
            FROM summary_messages l JOIN messages m ON m.message_id = l.message_id
            WHERE l.summary_id = %(summary_id)s
        ) AS direct
        GROUP BY island
    ), direct AS (
        SELECT array_agg(ARRAY[first_seq, last_seq] ORDER BY first_seq) AS spans FROM islands
    )
    {_OUTLINE}, direct.spans
    FROM kin JOIN summaries s ON s.summary_id = kin.summary_id CROSS JOIN direct
"""
_OF_MESSAGE = f"""
    WITH RECURSIVE kin AS (
        SELECT summary_id, -1 AS distance FROM summary_messages WHERE message_id = %(message_id)s
        UNION
        SELECT p.summary_id, kin.distance - 1
        FROM kin JOIN summary_parents p ON p.parent_summary_id = kin.summary_id
    ), held AS (
        {_OUTLINE}
        FROM kin JOIN summaries s ON s.summary_id = kin.summary_id
    ), kinds AS (
        SELECT array_agg(DISTINCT part_type::text) AS part_types FROM message_parts WHERE message_id = %(message_id)s
    )
    SELECT held.*, kinds.part_types FROM kinds LEFT JOIN held ON true
"""


def describe(id: str, *, scope: Scope) -> Description:
    """See `RetrievalEngine.describe`: two queries at most."""
    found = _ID.search(id) if isinstance(id, str) else None
    if found is None:
        raise NotFound(
            f"{str(id)[:80]!r} names nothing that can be described: ids begin with sum_, file_ or msg_.",
        )
    if found["summary"]:
        return _summary(scope.summary(found["summary"]))
    if found["file"]:
        return _file(scope.file(found["file"]))
    return _message(scope.message(int(found["message"])))


def _outline(row: Sequence[Any]) -> SummaryOutline:
    summary_id, kind, depth, tokens, opening, first, last, earliest, latest, messages, level, active, distance = row
    values = {
        "summary_id": summary_id,
        "kind": _KINDS[kind],
        "depth": depth,
        "token_count": tokens,
        "opening_tokens": opening,
        "first_seq": first,
        "last_seq": last,
        "earliest_at": datetime.fromisoformat(earliest),
        "latest_at": datetime.fromisoformat(latest),
        "descendant_count": messages,
        "level": _LEVELS[level],
        "active": active,
        "distance": distance,
    }
    return record(SummaryOutline, values)


def _in_order(outlines: Sequence[SummaryOutline]) -> list[SummaryOutline]:
    """By where they begin, the widest first; of one that lies at several distances, the nearest."""
    nearest: dict[str, SummaryOutline] = {}
    for outline in sorted(outlines, key=lambda outline: abs(outline.distance)):
        nearest.setdefault(outline.summary_id, outline)
    return sorted(nearest.values(), key=lambda outline: (outline.first_seq, -outline.depth, outline.summary_id))


def _summary(summary: Summary) -> Description:
    fetched = rows(_OF_SUMMARY, {"summary_id": summary.summary_id})
    outlines = [_outline(row[:-1]) for row in fetched]
    itself = next(outline for outline in outlines if outline.distance == 0)
    below = _in_order([outline for outline in outlines if outline.distance > 0])
    above = sorted(
        _in_order([outline for outline in outlines if outline.distance < 0]), key=lambda outline: -outline.distance
    )
    return Description(
        id=summary.summary_id,
        kind=ItemKind.SUMMARY,
        conversation_id=summary.conversation_id,
        created_at=summary.created_at,
        token_count=summary.token_count,
        active=itself.active,
        first_seq=summary.first_seq,
        last_seq=summary.last_seq,
        earliest_at=summary.earliest_at,
        latest_at=summary.latest_at,
        summary_kind=SummaryKind(summary.kind),
        depth=summary.depth,
        level=Level(summary.level),
        model=summary.model,
        opening_tokens=itself.opening_tokens,
        source_tokens=summary.source_tokens,
        message_count=summary.descendant_count,
        sources=tuple(outline.summary_id for outline in below if outline.distance == 1),
        source_messages=tuple(MessageSpan(*span) for span in fetched[0][-1] or ()),
        derived=tuple(outline.summary_id for outline in above if outline.distance == -1),
        held_by=tuple(above),
        manifest=tuple(below[:MOST_IN_MANIFEST]),
        manifest_complete=len(below) <= MOST_IN_MANIFEST,
        file_ids=tuple(summary.file_ids),
        quality=summary.quality,
    )


def _message(message: Message) -> Description:
    fetched = rows(_OF_MESSAGE, {"message_id": message.message_id})
    held_by = _in_order([_outline(row[:-1]) for row in fetched if row[0] is not None])
    held_by.sort(key=lambda outline: -outline.distance)
    return Description(
        id=f"msg_{message.message_id}",
        kind=ItemKind.MESSAGE,
        conversation_id=message.conversation_id,
        created_at=message.created_at,
        token_count=message.token_count,
        active=not held_by,
        first_seq=message.seq,
        last_seq=message.seq,
        role=Role(message.role),
        author=message.author,
        part_types=tuple(fetched[0][-1] or ()),
        held_by=tuple(held_by),
        content_hash=bytes(message.content_hash).hex(),
    )


def _file(file: LargeFile) -> Description:
    record = file.as_record()
    return Description(
        id=record.file_id,
        kind=ItemKind.FILE,
        conversation_id=record.conversation_id,
        created_at=record.created_at,
        file_name=record.file_name,
        mime_type=record.mime_type,
        byte_size=record.byte_size,
        exploration_summary=record.exploration_summary,
        content_hash=record.content_hash,
    )
