"""Makes degraded summaries again, when a model is back: new rows that supersede the old ones, which are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, QuerySet

from compaction import planner
from compaction.escalation import Lack
from compaction.jobs import open_jobs
from compaction.making import Made
from compaction.models import CompactionRun
from compaction.run import Run
from compaction.sources import degraded_sources_of, read_sources_again, text_of
from compaction.types import Outcome, Reason
from conversations.models import ContextItem, Conversation

# Between two attempts at one conversation that nobody has asked for.
PAUSE = timedelta(minutes=15)


def redo(run: Run) -> Outcome:
    """One degraded summary of the context after the other, oldest first, each with what below it is degraded, too.

    Where a model had no answer to one, it goes on with the next; where nobody was there, the others would only wait in
    vain. One whose texts were rejected is superseded all the same, by a row that says so: it waits no longer. A worker
    does what waits; a person's wish is for the rejected ones, too, for another model may have been configured since.
    """
    waiting = ""
    only_waiting = run.claim is not None
    for summary_id, tokens in _degraded(run.conversation_id, only_waiting=only_waiting):
        if run.is_out_of_bounds:
            return Outcome.STOPPED
        made = _made_again(run, summary_id, only_waiting=only_waiting)
        if isinstance(made, Lack):
            waiting = waiting or summary_id
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
        run.progress = replace(run.progress, details={"waiting_for_a_model": waiting})
        return Outcome.UNAVAILABLE
    return Outcome.COMPACTED if run.progress.redone else Outcome.NOTHING_TO_DO


def _says_the_same(summary_id: str, made: Made) -> bool:
    """Whether what was made again is still without a model, and no other text."""
    return made.summary.is_degraded and made.summary.content == text_of(summary_id)


def waiting_for_a_model(now: datetime) -> QuerySet[Conversation]:
    """Conversations that show a summary which waits for a model, and that nobody is at work on.

    What a model was asked for in vain a short while ago rests.
    """
    lately = CompactionRun.objects.filter(
        conversation_id=OuterRef("conversation_id"), reason=Reason.REDO, started_at__gt=now - PAUSE
    )
    lacking = ContextItem.objects.filter(
        conversation_id=OuterRef("conversation_id"), summary__is_degraded=True, summary__quality__waits=True
    )
    return Conversation.objects.filter(Exists(lacking), ~Exists(open_jobs()), ~Exists(lately))


def _degraded(conversation_id: int, *, only_waiting: bool) -> list[tuple[str, int]]:
    """The degraded summaries in the context, and what they cost there."""
    shown = ContextItem.objects.filter(conversation_id=conversation_id, summary__is_degraded=True)
    if only_waiting:
        shown = shown.filter(summary__quality__waits=True)
    return list(shown.order_by("ordinal").values_list("summary_id", "token_count"))


def _made_again(run: Run, summary_id: str, *, only_waiting: bool) -> list[Made] | Lack:
    """What supersedes the summary, after what supersedes its sources; or why one of them still waits."""
    all_made: list[Made] = []
    for source_id in degraded_sources_of(summary_id, only_waiting=only_waiting):
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
    if lack is not None and Lack(str(lack)).may_pass:
        return Lack(str(lack))
    return [*all_made, made]
