"""Makes degraded summaries again, when a model is back: new rows that supersede the old ones, which are kept."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from compaction import planner
from compaction.escalation import Lack
from compaction.jobs import open_jobs
from compaction.making import Made
from compaction.models import CompactionRun
from compaction.run import Run
from compaction.sources import degraded_sources_of, read_sources_again
from compaction.types import Outcome, Reason
from conversations.models import ContextItem, Conversation

# Between two attempts at one conversation that nobody has asked for.
PAUSE = timedelta(minutes=15)


def redo(run: Run) -> Outcome:
    """One degraded summary of the context after the other, oldest first, each with what below it is degraded, too.

    Ends at the first that still no model makes: the others would only wait for it in vain.
    """
    for summary_id, tokens in _degraded(run.conversation_id):
        if run.is_out_of_bounds:
            return Outcome.STOPPED
        made = _made_again(run, summary_id)
        if made is None:
            run.progress = replace(run.progress, details={"waiting_for_a_model": summary_id})
            return Outcome.UNAVAILABLE
        saved = tokens - made[-1].item_tokens
        progress = run.progress
        run.write(made, replace(progress, tokens=progress.tokens - saved, redone=progress.redone + len(made)))
    return Outcome.COMPACTED if run.progress.redone else Outcome.NOTHING_TO_DO


def waiting_for_a_model() -> QuerySet[Conversation]:
    """Conversations that show a summary which no model could be reached for, and that nobody is at work on.

    Where a model did answer, and its texts were rejected, asking it again would only cost as much again. What a model
    was asked for in vain a short while ago rests.
    """
    lately = CompactionRun.objects.filter(
        conversation_id=OuterRef("conversation_id"), reason=Reason.REDO, started_at__gt=timezone.now() - PAUSE
    )
    lacking = ContextItem.objects.filter(
        Q(summary__quality__lack=Lack.UNAVAILABLE) | Q(summary__quality__has_key="degraded_sources"),
        conversation_id=OuterRef("conversation_id"),
        summary__is_degraded=True,
    )
    return Conversation.objects.filter(Exists(lacking), ~Exists(open_jobs()), ~Exists(lately))


def _degraded(conversation_id: int) -> list[tuple[str, int]]:
    """The degraded summaries in the context, and what they cost there."""
    shown = ContextItem.objects.filter(conversation_id=conversation_id, summary__is_degraded=True)
    return list(shown.order_by("ordinal").values_list("summary_id", "token_count"))


def _made_again(run: Run, summary_id: str) -> list[Made] | None:
    """What supersedes the summary, after what supersedes its sources; None if no model made one of them."""
    all_made: list[Made] = []
    for source_id in degraded_sources_of(summary_id):
        below = _made_again(run, source_id)
        if below is None:
            return None
        all_made += below
    read = read_sources_again(summary_id, instead={made.summary.supersedes_id or "": made.summary for made in all_made})
    tokens = sum(run.store.tokens.count(source.text) for source in read.sources)
    made = run.maker.make(
        read,
        target_tokens=planner.target_of(tokens, depth=read.depth, policy=run.policy),
        supersedes_id=summary_id,
    )
    if made is None or made.summary.is_degraded:
        return None
    return [*all_made, made]
