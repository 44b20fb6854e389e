"""Goal 10: a backlog made room for, one transaction a summary; the summarizer's own time apart from the engine's."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from compaction.engine import CompactionEngine
from compaction.summarizing.summarizer import Summarizer, SummaryDraft, SummaryRequest
from compaction.types import Outcome
from conversations.types import SummaryKind
from tests.benchmarks.children import alone
from tests.benchmarks.compaction_floor import CompactionFloor
from tests.benchmarks.ingest import Pair, a_store
from tests.benchmarks.measure import peak_memory_mb
from tests.benchmarks.report import F, Line, at_least, at_most

# Of one pass: seconds by who spent them, summaries by who wrote them, and the client's memory.
Figures = dict[str, float]


@dataclass
class Timed:
    """A summarizer whose time is known, and which lets the floor take a step whenever it has worked."""

    inner: Summarizer
    floor: Iterator[None]
    working: float = 0.0
    beside: float = 0.0

    @property
    def name(self) -> str:
        return self.inner.name

    def summarize(self, request: SummaryRequest) -> SummaryDraft:
        started = time.perf_counter()
        draft = self.inner.summarize(request)
        done = time.perf_counter()
        next(self.floor, None)
        self.working += done - started
        self.beside += time.perf_counter() - done
        return draft


def compacted(pair: Pair, kind: SummaryKind) -> Figures:
    """One pass over both conversations, leaf or condensed, by turns and in a process of its own."""
    # The leaf pass alone leaves a context that fills its budget with summaries, which is measured, too.
    overrides = {"max_depth": 0} if kind is SummaryKind.LEAF else {}
    a_store().configure_conversation(conversation_id=pair.ours, overrides=overrides)
    return alone(compact, pair, kind)


def compact(_: Any, pair: Pair, kind: SummaryKind) -> Figures:
    floor = CompactionFloor(pair.floor)
    steps = floor.steps(kind)
    engine = CompactionEngine.from_settings()
    timed = Timed(engine.escalation.chain[0], steps)
    engine = replace(engine, escalation=replace(engine.escalation, chain=(timed,)))
    # The tokenizer is loaded with the first text, once in the life of a worker: nobody's time here; its memory counts.
    engine.store.tokens.count("a text")
    started = time.perf_counter()
    result = engine.compact(conversation_id=pair.ours)
    taken = time.perf_counter() - started
    assert result.outcome is Outcome.COMPACTED, result
    # The floor's is in it, some 4 MB.
    peak = peak_memory_mb()
    for _ in steps:
        pass
    return {
        "engine": taken - timed.working - timed.beside,
        "summarizer": timed.working,
        "floor": floor.laps.total,
        "summaries": result.leaf_summaries + result.condensed_summaries,
        "floor_summaries": floor.written,
        "peak_mb": peak,
    }


def lines_of(found: dict[int, list[Figures]]) -> list[Line]:
    """Of each size with its passes."""
    lines = []
    spent = {size: {name: sum(each[name] for each in passes) for name in passes[0]} for size, passes in found.items()}
    for size, each in spent.items():
        work = f"compact {size:,} into {each['summaries']} summaries (floor: {each['floor_summaries']})"
        rate, floor = size / each["engine"], size / each["floor"]
        whole = size / (each["engine"] + each["summarizer"])
        peak = max(figures["peak_mb"] for figures in found[size])
        lines += [
            Line("10", work, rate, "msg/s", floor=floor, ratio=rate / floor, goal=at_least(0.4, F)),
            Line("10", f"compact {size:,}, with the summarizer", whole, "msg/s", goal=at_least(1500, " msg/s")),
            Line("10", f"compact {size:,}, client's memory", peak, "MB", goal=at_most(150, " MB")),
        ]
    before, last = sorted(found)[-2:]
    grown = [spent[last][who] / spent[before][who] for who in ("floor", "engine")]
    # At most 12 times the time for 10 times the messages, where the floor takes 10 times the time in even weather.
    work = f"compact {last:,}, time to that of {before:,}"
    goal = at_least(10 / 12, F)
    return [*lines, Line("10", work, grown[1], "x", floor=grown[0], ratio=grown[0] / grown[1], goal=goal)]
