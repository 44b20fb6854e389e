"""Describe what covers a range of messages, and what opening it costs."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.humanize import counted
from conversations.scope import Scope
from conversations.sql import load, rows, snapshot
from retrieval.describing.covering import Range, covering, range_of
from retrieval.describing.range_types import CoveringNode, RangeDescription
from retrieval.describing.summary_outlines import in_order, outline
from retrieval.types import MessageSpan, SummaryOutline

MOST_IN_MANIFEST = 50

_SQL = load("retrieval/describe_range.sql")
_TEXTS = "SELECT summary_id, content FROM summaries WHERE summary_id = ANY(%s)"


def describe_range(
    *, conversation_id: int, from_seq: int, to_seq: int, text_tokens: int, scope: Scope
) -> RangeDescription:
    """See `RetrievalEngine.describe_range`: six queries at most, whatever the range."""
    with snapshot():
        stretch = range_of(conversation_id, from_seq, to_seq, scope=scope)
        found = covering(stretch)
        below = _below(stretch, [summary.summary_id for summary, _ in found])
        raw = [MessageSpan(*row) for row in rows(_SQL["raw_spans"], stretch.values)]
        [[message_tokens, raw_tokens]] = rows(_SQL["tokens"], stretch.values)
        texts = _texts([summary for summary, _ in found], text_tokens)
    nodes = [
        CoveringNode(
            summary=summary,
            messages_in_range=messages,
            seqs_before=max(0, from_seq - summary.first_seq),
            seqs_after=max(0, summary.last_seq - stretch.last_seq),
            content=texts.get(summary.summary_id),
        )
        for summary, messages in found
    ]
    return RangeDescription(
        conversation_id=conversation_id,
        from_seq=from_seq,
        to_seq=to_seq,
        first_seq=min([from_seq, *(summary.first_seq for summary, _ in found)]),
        last_seq=max([stretch.last_seq, *(summary.last_seq for summary, _ in found)]),
        message_count=stretch.message_count,
        message_tokens=message_tokens,
        context_tokens=raw_tokens + sum(summary.token_count for summary, _ in found),
        nodes=tuple(nodes),
        raw_messages=tuple(raw),
        manifest=tuple(below[:MOST_IN_MANIFEST]),
        manifest_complete=len(below) <= MOST_IN_MANIFEST,
        note=beyond_the_end(stretch),
    )


def beyond_the_end(stretch: Range) -> str | None:
    """What to say of a range that goes on where the conversation does not."""
    if stretch.last_seq == stretch.to_seq:
        return None
    return f"The conversation has {counted(stretch.conversation.next_seq - 1, 'message')} so far."


def _below(stretch: Range, roots: Sequence[str]) -> list[SummaryOutline]:
    if not roots:
        return []
    return in_order(
        outline(row) for row in rows(_SQL["below"], {**stretch.values, "roots": list(roots), "most": MOST_IN_MANIFEST})
    )


def _texts(summaries: Sequence[SummaryOutline], most_tokens: int) -> dict[str, str]:
    """The texts of the first summaries, as many as cost no more than this together."""
    wanted = []
    for summary in summaries:
        most_tokens -= summary.token_count
        if most_tokens < 0:
            break
        wanted.append(summary.summary_id)
    return dict(rows(_TEXTS, [wanted])) if wanted else {}
