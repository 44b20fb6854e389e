"""The two passes of a run: raw messages into leaf summaries, and summaries into condensed ones."""

from __future__ import annotations

from compaction.planning import planner
from compaction.run import Run
from compaction.steps import follow, leaf_and_condensed_steps
from compaction.types import Outcome


def leaf_and_condensed(run: Run) -> Outcome:
    """Makes room: first of messages, oldest first, then of summaries, shallowest first."""
    # Before the context is read: loading a tokenizer takes for a moment what a long context would take all the while.
    run.store.tokens.count("")
    if not _both(run):
        return Outcome.STOPPED
    if run.reason.is_automatic and _is_pressed(run):
        return Outcome.EXHAUSTED
    return Outcome.COMPACTED if run.progress.summaries else Outcome.NOTHING_TO_DO


def _both(run: Run) -> bool:
    """Whether the passes came to their natural end; false if a bound stopped them."""
    return follow(
        leaf_and_condensed_steps(run.read_context(), run.policy),
        make=lambda step: run.summarize(step.chunk, step.target_tokens, previous=step.previous),
        is_enough=lambda: _is_enough(run),
        is_out_of_bounds=lambda: run.is_out_of_bounds,
    )


def _is_enough(run: Run) -> bool:
    """An automatic run makes room for some time to come, and no more; a person gets all the room there is."""
    return run.reason.is_automatic and planner.is_relieved(
        active_tokens=run.progress.tokens, active_messages=run.progress.messages, policy=run.policy
    )


def _is_pressed(run: Run) -> bool:
    return (
        run.progress.tokens >= planner.threshold_tokens(run.policy)
        or run.progress.messages > run.policy.max_active_messages
    )
