"""Says what an id names and how it hangs together with the rest, without opening it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from conversations.errors import Invalid
from conversations.models import LargeFile, Message, MessagePart, Summary, SummaryMessage, SummaryParent
from conversations.reading import rows, snapshot
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from conversations.types import Level, Role, SummaryKind
from retrieval.types import Description, ItemKind, MessageSpan, SummaryOutline

# An id may come with text around it, as a model quotes it: <summary id="sum_0123456789abcdef" ...>.
_ID = re.compile(r"\b(?:(?P<summary>sum_[0-9A-Za-z_]+)|(?P<file>file_[0-9A-Za-z_]+)|msg_(?P<message>[0-9]{1,18}))\b")

MOST_OUTLINES = 200

_OUTLINE = """
    s.summary_id, s.kind::text, s.depth, s.token_count,
    (SELECT coalesce(sum(o.token_count), 0)
     FROM summary_parents p JOIN summaries o ON o.summary_id = p.parent_summary_id
     WHERE p.summary_id = s.summary_id)
    + (SELECT coalesce(sum(m.token_count), 0) FROM summary_messages l JOIN messages m ON m.message_id = l.message_id
       WHERE l.summary_id = s.summary_id),
    s.first_seq, s.last_seq, s.earliest_at, s.latest_at, s.descendant_count, s.level,
    NOT EXISTS (SELECT FROM summary_parents d WHERE d.parent_summary_id = s.summary_id)
"""
# One more than is shown, to know whether that is all. UNION, not UNION ALL: it ends on a cycle, too.
_BELOW = f"""
    WITH RECURSIVE below(summary_id, distance) AS (
        SELECT parent_summary_id, 1 FROM summary_parents WHERE summary_id = %s
        UNION
        SELECT p.parent_summary_id, b.distance + 1
        FROM below b JOIN summary_parents p ON p.summary_id = b.summary_id
    ), shown AS (
        SELECT b.summary_id, min(b.distance) AS distance FROM below b JOIN summaries s USING (summary_id)
        GROUP BY b.summary_id, s.first_seq, s.depth ORDER BY s.first_seq, s.depth DESC LIMIT {MOST_OUTLINES + 1}
    )
    SELECT {_OUTLINE}, shown.distance FROM shown JOIN summaries s USING (summary_id)
    ORDER BY s.first_seq, s.depth DESC
"""
_ABOVE = f"""
    WITH RECURSIVE above(summary_id, distance) AS (
        SELECT summary_id, 1 FROM summary_messages WHERE message_id = %s
        UNION
        SELECT p.summary_id, a.distance + 1 FROM above a JOIN summary_parents p ON p.parent_summary_id = a.summary_id
    )
    SELECT {_OUTLINE}, -min(above.distance) FROM above JOIN summaries s USING (summary_id)
    GROUP BY s.summary_id ORDER BY min(above.distance)
"""
_OPENING_TOKENS = f"SELECT {_OUTLINE}, 0 FROM summaries s WHERE s.summary_id = %s"


@dataclass(frozen=True)
class Describer:
    """Describes summaries, messages and files."""

    scope: Scope = EVERYTHING

    def describe(self, *, id: str) -> Description:
        found = _ID.search(id)
        if found is None:
            raise Invalid(
                f"{id[:80]!r} names nothing that can be described; ids begin with sum_, msg_ or file_.", code="bad_id"
            )
        with snapshot():
            if found["summary"]:
                return _of_summary(self.scope.summary(found["summary"]))
            if found["file"]:
                return _of_file(self.scope.file(found["file"]))
            return _of_message(self.scope.message(int(found["message"])))


def _of_summary(summary: Summary) -> Description:
    itself, *_ = _outlines(_OPENING_TOKENS, summary.summary_id)
    manifest = _outlines(_BELOW, summary.summary_id)
    seqs = SummaryMessage.objects.filter(summary_id=summary.summary_id).order_by("ordinal")
    sources = SummaryParent.objects.filter(summary_id=summary.summary_id).order_by("ordinal")
    derived = SummaryParent.objects.filter(source_id=summary.summary_id).order_by("summary_id")
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
        sources=tuple(sources.values_list("source_id", flat=True)),
        source_messages=spans_of(seqs.values_list("message__seq", flat=True)),
        derived=tuple(derived.values_list("summary_id", flat=True)),
        manifest=tuple(manifest[:MOST_OUTLINES]),
        manifest_complete=len(manifest) <= MOST_OUTLINES,
        file_ids=tuple(summary.file_ids),
        quality=summary.quality,
        content_hash=bytes(summary.summary_hash).hex(),
    )


def _of_message(message: Message) -> Description:
    held_by = tuple(_outlines(_ABOVE, message.message_id))
    parts = MessagePart.objects.filter(message_id=message.message_id).exclude(part_type="compaction", is_synthetic=True)
    return Description(
        id=f"msg_{message.message_id}",
        kind=ItemKind.MESSAGE,
        conversation_id=message.conversation_id,
        created_at=message.created_at,
        token_count=message.token_count,
        active=not held_by,
        first_seq=message.seq,
        last_seq=message.seq,
        earliest_at=message.created_at,
        latest_at=message.created_at,
        message_count=1,
        role=Role(message.role),
        author=message.author,
        part_types=tuple(parts.order_by("ordinal").values_list("part_type", flat=True)),
        held_by=held_by,
        content_hash=bytes(message.content_hash).hex(),
    )


def _of_file(file: LargeFile) -> Description:
    return Description(
        id=file.file_id,
        kind=ItemKind.FILE,
        conversation_id=file.conversation_id,
        created_at=file.created_at,
        file_name=file.file_name,
        mime_type=file.mime_type,
        byte_size=file.byte_size,
        exploration_summary=file.exploration_summary,
        content_hash=bytes(file.content_hash).hex() if file.content_hash is not None else None,
    )


def _outlines(statement: str, id: str | int) -> list[SummaryOutline]:
    return [
        SummaryOutline(
            summary_id=summary_id,
            kind=SummaryKind(kind),
            depth=depth,
            token_count=token_count,
            opening_tokens=int(opening_tokens),
            first_seq=first_seq,
            last_seq=last_seq,
            earliest_at=earliest_at,
            latest_at=latest_at,
            descendant_count=descendant_count,
            level=Level(level),
            active=active,
            distance=distance,
        )
        for (
            summary_id, kind, depth, token_count, opening_tokens, first_seq, last_seq, earliest_at, latest_at,
            descendant_count, level, active, distance,
        ) in rows(statement, [id])
    ]  # fmt: skip


def spans_of(seqs: Iterable[int]) -> tuple[MessageSpan, ...]:
    """Numbers in order as the stretches without a gap that they make."""
    spans: list[MessageSpan] = []
    for seq in seqs:
        if spans and spans[-1].last_seq == seq - 1:
            spans[-1] = MessageSpan(spans[-1].first_seq, seq)
        else:
            spans.append(MessageSpan(seq, seq))
    return tuple(spans)
