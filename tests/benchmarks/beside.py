"""Goal 11: how long an append takes while the very conversation is compacted, and that nothing is lost or doubled."""

from __future__ import annotations

import time
from typing import Any

from compaction.engine import CompactionEngine
from compaction.models import CompactionRun
from compaction.types import Outcome
from conversations.models import Message
from integrity.checker import IntegrityChecker
from tests.benchmarks.children import together
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.ingest import Pair, Writing, a_store, appending
from tests.benchmarks.measure import Laps
from tests.benchmarks.report import Line, at_most

BACKLOG = 20_000
# Behind the measured time, for a compaction that takes longer than the appends.
SECONDS_AT_MOST = 120


def beside_compaction() -> list[Line]:
    """One process appends message by message while another one compacts the backlog before them."""
    pair = Pair.opened("beside")
    Writing(pair).in_batches(iter(Corpus(BACKLOG, seed=5)))
    laps, _ = together(work, [("append", pair.ours), ("compact", pair.ours)])
    stored = Message.objects.filter(conversation_id=pair.ours).count()
    report = IntegrityChecker.from_settings().run(conversation_id=pair.ours)
    wrong = abs(stored - BACKLOG - len(laps.seconds)) + sum(each.count for each in report.invariants)
    # The floor is the median, which shows how much of the longest is the machine's own.
    return [
        Line("11", f"append one while {BACKLOG:,} are compacted, p99; floor: p50", floor=1000 * laps.cost,
             ours=1000 * laps.cost_at(0.99), unit="ms", goal=at_most(20, " ms")),
        Line("11", "messages lost or doubled, and findings of the checker", ours=wrong, goal=at_most(0, "")),
    ]  # fmt: skip


def work(barrier: Any, kind: str, conversation_id: int) -> Laps | None:
    """What each of the two processes does; the appending one goes on until the other has ended its run."""
    if kind == "compact":
        engine = CompactionEngine.from_settings()
        barrier.wait()
        result = engine.compact(conversation_id=conversation_id)
        assert result.outcome is Outcome.COMPACTED, result
        return None
    a_store().tokens.count("warm")
    runs = CompactionRun.objects.filter(conversation_id=conversation_id, outcome=Outcome.COMPACTED)
    barrier.wait()
    until = time.monotonic() + SECONDS_AT_MOST
    return appending(conversation_id, size=1, seed=6, goes_on=lambda: time.monotonic() < until and not runs.exists())
