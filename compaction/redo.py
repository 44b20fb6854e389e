"""Regenerate degraded, erased, damaged and outdated summaries.

The new rows supersede the old ones, which are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Exists, OuterRef, Subquery

from compaction.background.jobs import has_open_job
from compaction.models import CompactionRun
from compaction.run import Made, Run
from compaction.sources import (
    current_sources,
    has_text_left,
    is_erased,
    outdated_summaries,
    read_cost,
    read_sources_replacing,
    sources_to_redo,
    text_of,
    to_redo,
)
from compaction.summarizing.escalation import Lack
from compaction.types import Outcome, Reason
from conversations.models import ContextItem, Conversation
from conversations.sql import snapshot

# The time before a summary that waits for a model is tried again; each attempt doubles it.
PAUSE = timedelta(minutes=15)
LONGEST_PAUSE = timedelta(days=1)
# With the pauses between them, these attempts take more than two days.
MOST_ATTEMPTS = 9

_WAITING = "waiting_for_a_model"
_ATTEMPTS = "attempts_without_an_answer"
_NEXT = "next_attempt_at"
# The next attempt after a run that left no summary waiting, or found no model available.
_AT_ONCE = datetime.min.replace(tzinfo=UTC).isoformat()


def redo(run: Run) -> Outcome:
    """Regenerate the degraded summaries of the context, oldest first.

    If no model answers for a summary, it waits, and the next one is tried. If no model is available, the run ends. If
    the models' texts are rejected, a degraded summary that no longer waits supersedes the old one. A worker regenerates
    only degraded summaries that wait. A person's request also covers rejected ones, because another model may be
    configured by now. Erased and outdated summaries are regenerated even if no model answers.
    """
    waiting = ""
    lack = Lack.UNANSWERED
    only_waiting = run.lease is not None and run.lease.row.reason != Reason.REDO_ALL
    outdated = outdated_summaries(run.conversation_id)
    for summary_id, tokens in _read_summaries(run, only_waiting=only_waiting, outdated=outdated):
        if run.has_reached_limit:
            return Outcome.STOPPED
        made = _make_again(run, summary_id, only_waiting=only_waiting, outdated=outdated)
        if isinstance(made, Lack):
            waiting, lack = waiting or summary_id, made
            if made is Lack.UNAVAILABLE:
                break
            continue
        last = made[-1].summary
        if not only_waiting and last.is_degraded and last.content == text_of(summary_id):
            # The texts were rejected again: a new row with the same text would gain nothing.
            continue
        run.write(made, instead_of_tokens=tokens)
    if waiting:
        run.details = _details_of(waiting, lack, run)
        return Outcome.UNAVAILABLE
    return run.outcome_when_done


def waiting_for_a_model(now: datetime) -> Iterator[Conversation]:
    """Yield conversations whose context has a summary that waits for a model.

    After an attempt without an answer, a conversation is left out for a time that doubles with each attempt. This does
    not apply if another summary has begun to wait since.
    """
    attempts = CompactionRun.objects.filter(conversation_id=OuterRef("conversation_id"), reason=Reason.REDO)
    last = attempts.order_by("-started_at")
    lacking = ContextItem.objects.filter(
        conversation_id=OuterRef("conversation_id"),
        summary__is_degraded=True,
        summary__quality__waits=True,
        # For an erased summary, the erasure has requested a redo.
        summary__erased_by__isnull=True,
    )
    newest = lacking.order_by("-summary__created_at")
    waiting = Conversation.objects.filter(
        Exists(lacking), ~has_open_job(), ~Exists(attempts.filter(started_at__gt=now - PAUSE))
    ).annotate(
        tried_at=Subquery(last.values("started_at")[:1]),
        noted=Subquery(last.values("details")[:1]),
        waits_since=Subquery(newest.values("summary__created_at")[:1]),
    )
    for conversation in waiting.iterator(chunk_size=1000):
        is_new = conversation.tried_at is None or conversation.waits_since > conversation.tried_at
        next_attempt_at = (conversation.noted or {}).get(_NEXT, _AT_ONCE)
        if is_new or (next_attempt_at is not None and datetime.fromisoformat(next_attempt_at) <= now):
            yield conversation


def _read_summaries(run: Run, *, only_waiting: bool, outdated: Collection[str]) -> list[tuple[str, int]]:
    """Read the summaries to regenerate and their tokens; set the run's counts."""
    with snapshot():
        messages, tokens = read_cost(run.conversation_id)
        shown = list(
            ContextItem.objects.filter(
                to_redo("summary__", only_waiting=only_waiting, outdated=outdated),
                conversation=run.conversation,
                summary__isnull=False,
            )
            .order_by("ordinal")
            .values_list("summary_id", "token_count", "summary__erased_by_id")
        )
    run.start_from(tokens=tokens, messages=messages)
    return [(summary_id, tokens) for summary_id, tokens, erased in shown if erased is None or has_text_left(summary_id)]


def _make_again(run: Run, summary_id: str, *, only_waiting: bool, outdated: Collection[str]) -> list[Made] | Lack:
    """Regenerate a summary, sources first; return all new ones, or why one waits."""
    all_made: list[Made] = []
    # A source that it shares with a summary of another branch may have been superseded there.
    source_ids = current_sources(summary_id)
    for source_id in sources_to_redo(source_ids, only_waiting=only_waiting, outdated=outdated):
        below = _make_again(run, source_id, only_waiting=only_waiting, outdated=outdated)
        if isinstance(below, Lack):
            return below
        all_made += below
    instead = {made.summary.supersedes_id or "": made.summary for made in all_made}
    sources = read_sources_replacing(summary_id, source_ids, instead=instead, withheld=run.withheld)
    target = run.policy.target_of(sum(run.store.tokens.count(text.text) for text in sources.texts), depth=sources.depth)
    made = run.make(sources, target_tokens=target, supersedes_id=summary_id)
    if made is None:
        return Lack.UNANSWERED
    lack = made.summary.quality.get("lack")
    is_shown = summary_id not in outdated and not is_erased(summary_id)
    if lack is not None and Lack(str(lack)).may_pass and is_shown:
        return Lack(str(lack))
    return [*all_made, made]


def _details_of(waiting: str, lack: Lack, run: Run) -> dict[str, Any]:
    """Build the details of a run that left the summary `waiting`.

    `next_attempt_at` is None if there is no further automatic attempt.
    """
    attempts = CompactionRun.objects.filter(conversation_id=run.conversation_id, reason=Reason.REDO)
    # This run has a row by now if it has made a summary.
    attempts = attempts.exclude(pk=run.row.pk)
    before = attempts.order_by("-started_at").values_list("details", flat=True).first() or {}
    so_far = before.get(_ATTEMPTS, 0) if before.get(_WAITING) == waiting else 0
    details = {_WAITING: waiting, "lack": lack.value, _ATTEMPTS: so_far}
    if lack is Lack.UNANSWERED:
        pause = min(LONGEST_PAUSE, PAUSE * 2 ** min(so_far, 10))
        next_attempt_at = (run.row.started_at + pause).isoformat() if so_far + 1 < MOST_ATTEMPTS else None
        details |= {_ATTEMPTS: so_far + 1, _NEXT: next_attempt_at}
    return details
