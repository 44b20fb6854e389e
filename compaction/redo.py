"""Makes summaries again: degraded ones when a model is back, erased ones from what remains.

The new rows supersede the old ones, which are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef, Subquery

from compaction.jobs import open_jobs
from compaction.models import CompactionRun
from compaction.planning import planner
from compaction.run import Run
from compaction.sources import (
    is_erased,
    read_cost,
    read_sources_again,
    remains_of,
    sources_to_redo,
    text_of,
    to_redo,
)
from compaction.summarizing.escalation import Lack
from compaction.summarizing.retry_schedule import PAUSE, details_of, is_rested
from compaction.summarizing.summary_factory import Made
from compaction.types import Outcome, Reason
from conversations.models import ContextItem, Conversation
from conversations.sql import snapshot


def redo(run: Run) -> Outcome:
    """One degraded summary of the context after the other, oldest first, each with what below it is degraded, too.

    Where a model had no answer to one, it goes on with the next; where nobody was there, the others would only wait in
    vain. One whose texts were rejected is superseded all the same, by a row that says so: it waits no longer. A worker
    does what waits, unless it was a person who left it to the worker: a person's wish is for the rejected ones, too,
    for another model may have been configured since. An erased one waits for nobody: what can be had now is better
    than nothing.
    """
    waiting = ""
    lack = Lack.UNANSWERED
    only_waiting = run.claim is not None and run.claim.reason is not Reason.REDO_ALL
    for summary_id, tokens in _read(run, only_waiting=only_waiting):
        if run.is_out_of_bounds:
            return Outcome.STOPPED
        made = _made_again(run, summary_id, only_waiting=only_waiting)
        if isinstance(made, Lack):
            waiting, lack = waiting or summary_id, made
            if made is Lack.UNAVAILABLE:
                break
            continue
        if not only_waiting and _says_the_same(summary_id, made[-1]):
            # Rejected once more, and nothing is gained by another row that says so.
            continue
        saved = tokens - made[-1].item_tokens
        progress = run.progress
        run.write(made, replace(progress, tokens=progress.tokens - saved, redone=progress.redone + len(made)))
    if waiting:
        noted = details_of(waiting, lack, before=_noted_before(run.conversation_id), started_at=run.started_at)
        run.progress = replace(run.progress, details=noted)
        return Outcome.UNAVAILABLE
    return Outcome.COMPACTED if run.progress.redone else Outcome.NOTHING_TO_DO


def _says_the_same(summary_id: str, made: Made) -> bool:
    """Whether what was made again is still without a model, and no other text."""
    return made.summary.is_degraded and made.summary.content == text_of(summary_id)


def _noted_before(conversation_id: int) -> dict[str, Any]:
    """What the last attempt at the conversation has come to know."""
    attempts = CompactionRun.objects.filter(conversation_id=conversation_id, reason=Reason.REDO)
    return attempts.order_by("-started_at").values_list("details", flat=True).first() or {}


def waiting_for_a_model(now: datetime) -> Iterator[Conversation]:
    """Conversations that show a summary which waits for a model, and that nobody is at work on.

    What a model was asked for in vain a short while ago rests, and the longer the more often that was; what has come to
    wait since is not held up by it.
    """
    attempts = CompactionRun.objects.filter(conversation_id=OuterRef("conversation_id"), reason=Reason.REDO)
    last = attempts.order_by("-started_at")
    lacking = ContextItem.objects.filter(
        conversation_id=OuterRef("conversation_id"),
        summary__is_degraded=True,
        summary__quality__waits=True,
        # Asked for once, when it was erased.
        summary__erased_by__isnull=True,
    )
    newest = lacking.order_by("-summary__created_at")
    waiting = Conversation.objects.filter(
        Exists(lacking), ~Exists(open_jobs()), ~Exists(attempts.filter(started_at__gt=now - PAUSE))
    ).annotate(
        tried_at=Subquery(last.values("started_at")[:1]),
        noted=Subquery(last.values("details")[:1]),
        waits_since=Subquery(newest.values("summary__created_at")[:1]),
    )
    for conversation in waiting.iterator(chunk_size=1000):
        is_new = conversation.tried_at is None or conversation.waits_since > conversation.tried_at
        if is_new or is_rested(conversation.noted, now=now):
            yield conversation


def _read(run: Run, *, only_waiting: bool) -> list[tuple[str, int]]:
    """What is to be made again; the run starts from what the context costs at the moment when that is read."""
    with snapshot():
        messages, tokens = read_cost(run.conversation_id)
        shown = _shown(run.conversation_id, only_waiting=only_waiting)
    run.starts_from(tokens=tokens, messages=messages)
    return shown


def _shown(conversation_id: int, *, only_waiting: bool) -> list[tuple[str, int]]:
    """The summaries in the context that are to be made again, and what they cost there."""
    shown = ContextItem.objects.filter(
        to_redo("summary__", only_waiting=only_waiting), conversation_id=conversation_id, summary__isnull=False
    )
    ordered = shown.order_by("ordinal").values_list("summary_id", "token_count", "summary__erased_by_id")
    return [(summary_id, tokens) for summary_id, tokens, erased in ordered if erased is None or remains_of(summary_id)]


def _made_again(run: Run, summary_id: str, *, only_waiting: bool) -> list[Made] | Lack:
    """What supersedes the summary, after what supersedes its sources; or why one of them still waits."""
    all_made: list[Made] = []
    for source_id in sources_to_redo(summary_id, only_waiting=only_waiting):
        below = _made_again(run, source_id, only_waiting=only_waiting)
        if isinstance(below, Lack):
            return below
        all_made += below
    read = read_sources_again(summary_id, instead={made.summary.supersedes_id or "": made.summary for made in all_made})
    tokens = sum(run.store.tokens.count(source.text) for source in read.sources)
    made = run.maker.make(
        read,
        target_tokens=planner.target_of(tokens, depth=read.depth, policy=run.policy),
        supersedes_id=summary_id,
    )
    if made is None:
        return Lack.UNANSWERED
    lack = made.summary.quality.get("lack")
    if lack is not None and Lack(str(lack)).may_pass and not is_erased(summary_id):
        return Lack(str(lack))
    return [*all_made, made]
