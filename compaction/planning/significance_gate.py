"""The significance gate: whether an automatic run should pass over what there is."""

from __future__ import annotations

from dataclasses import replace

from compaction.planning.significance import significance
from compaction.run import Run
from compaction.sources import read_summary_texts, read_turns


def is_insignificant(run: Run) -> bool:
    """Whether nothing in the context is worth a summary; the figures that say so are left in the run's details."""
    if not run.policy.significance_gate or run.decision.is_hard:
        return False
    found = significance(read_turns(run.conversation_id), summaries=read_summary_texts(run.conversation_id))
    if found.is_trivial:
        run.progress = replace(run.progress, details={"significance": found.as_details()})
    return found.is_trivial
