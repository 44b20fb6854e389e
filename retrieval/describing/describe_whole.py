"""Describe runs and conversations."""

from __future__ import annotations

from compaction.models import CompactionRun
from conversations.errors import NotFound
from conversations.models import Conversation
from conversations.scope import Scope
from conversations.sql import load, rows, snapshot
from retrieval.describing.summary_outlines import outline
from retrieval.types import Description, ItemKind, MessageSpan

MOST_SUMMARIES = 50
MOST_FILES = 50

_SQL = load("retrieval/describe.sql")
_RAW_SPANS = load("retrieval/describe_range.sql")["raw_spans"]


def describe_run(run_id: str, *, scope: Scope) -> Description:
    """What the run came to and which summaries it made; NotFound alike for what is not there and what is not seen."""
    runs = scope.narrow(CompactionRun.objects.all())
    run = runs.filter(run_id=run_id).first() if run_id.isprintable() else None
    if run is None:
        raise NotFound(f"There is no run {run_id[:80]!r} that you may see.")
    made = [
        outline(row)
        for row in rows(
            _SQL["made_by_run"], {"conversation_id": run.conversation_id, "run_id": run_id, "most": MOST_SUMMARIES}
        )
    ]
    return Description(
        id=run.run_id,
        kind=ItemKind.RUN,
        conversation_id=run.conversation_id,
        created_at=run.started_at,
        first_seq=min((each.first_seq for each in made), default=None),
        last_seq=max((each.last_seq for each in made), default=None),
        manifest=tuple(made[:MOST_SUMMARIES]),
        manifest_complete=len(made) <= MOST_SUMMARIES,
        run=run.as_record(),
        summary_count=run.leaf_summaries + run.condensed_summaries + run.redone_summaries,
    )


def describe_conversation(conversation: Conversation) -> Description:
    """What the conversation holds, what of it a model sees now, and what the last run in it came to."""
    number = {"conversation_id": conversation.conversation_id}
    with snapshot():
        # Again, so that its counters are of the same moment as what they count.
        conversation.refresh_from_db()
        shown = [outline(row) for row in rows(_SQL["active_summaries"], {**number, "most": MOST_SUMMARIES})]
        raw = rows(_RAW_SPANS, {**number, "from": 0, "upto": conversation.next_seq})
        [[earliest_at, latest_at, summary_count, depth]] = rows(_SQL["figures_of_conversation"], number)
        file_ids = [row[0] for row in rows(_SQL["files_of_conversation"], {**number, "most": MOST_FILES})]
        last_run = CompactionRun.objects.filter(conversation=conversation).order_by("-started_at").first()
    record = conversation.as_record()
    return Description(
        id=f"conv_{conversation.conversation_id}",
        kind=ItemKind.CONVERSATION,
        conversation_id=conversation.conversation_id,
        created_at=conversation.created_at,
        token_count=record.counters.active_tokens,
        first_seq=1 if record.counters.message_count else None,
        last_seq=record.counters.message_count or None,
        earliest_at=earliest_at,
        latest_at=latest_at,
        depth=depth,
        source_tokens=record.counters.total_tokens,
        message_count=record.counters.message_count,
        manifest=tuple(shown[:MOST_SUMMARIES]),
        manifest_complete=len(shown) <= MOST_SUMMARIES,
        file_ids=tuple(file_ids),
        conversation=record,
        run_id=last_run.run_id if last_run is not None else None,
        run=last_run.as_record() if last_run is not None else None,
        raw_messages=tuple(MessageSpan(*row) for row in raw),
        summary_count=summary_count,
    )
