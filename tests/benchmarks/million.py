"""Goals 5 and 6 among a million: a conversation searched alone, then among ten of its size, then all ten at once."""

from __future__ import annotations

from typing import Any

from retrieval.engine import RetrievalEngine
from tests.benchmarks.children import alone, together
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.ingest import BATCH, Pair, a_store
from tests.benchmarks.measure import Laps, blocks
from tests.benchmarks.report import F, Line, at_least, at_most
from tests.benchmarks.search import HITS, queries_for, queries_of

CONVERSATIONS = 10
WRITERS = 3
WARM_UP = 3


def searched_among_a_million(size: int) -> list[Line]:
    """Ten conversations of this size, not compacted: a million messages where that is 100,000."""
    # Not above: Django is set up by now.
    from tests.benchmarks.course import analyze

    [first] = alone(fill, [1], size)
    analyze()
    cells = queries_for(size, Pair(ours=first, floor=first))
    before = {cell: _newest(queries, conversation_id=first) for cell, queries in cells.items()}
    seeds = range(2, CONVERSATIONS + 1)
    together(fill, [(list(seeds[writer::WRITERS]), size) for writer in range(WRITERS)])
    analyze()
    total = CONVERSATIONS * size
    lines = []
    for place, narrowed in (("in one of ten", {"conversation_id": first}), ("over all", {})):
        for (band, terms), queries in cells.items():
            small, large = before[band, terms], _newest(queries, **narrowed)
            work = f"newest first, {terms} {band} {place}, {total:,} in all, p50; floor: alone"
            lines.append(
                Line("5", work, floor=1000 * small.cost, ours=1000 * large.cost, unit="ms",
                     ratio=small.cost / large.cost, goal=at_least(1 / 3, F))
            )  # fmt: skip
    for band in dict.fromkeys(band for band, _ in cells):
        found = _timed(queries_of(band, cells))
        lines.append(
            Line("6", f"grep {band} words over {total:,}, p50", ours=1000 * found.cost, unit="ms",
                 goal=at_most(150, " ms"))
        )  # fmt: skip
    return lines


def fill(barrier: Any, seeds: list[int], size: int) -> list[int]:
    """In a process of its own: a conversation of each of these corpora; their ids."""
    store, ids = a_store(), []
    for seed in seeds:
        ids.append(store.open_conversation(session_id=f"{seed} of {CONVERSATIONS}").conversation_id)
        for batch in blocks(Corpus(size, seed=seed), BATCH):
            store.append_messages(conversation_id=ids[-1], messages=batch)
    return ids


def _newest(queries: list[str], **narrowed: Any) -> Laps:
    return _timed(queries, sort="recency", **narrowed)


def _timed(queries: list[str], **asked: Any) -> Laps:
    engine = RetrievalEngine.from_settings(a_store().scope)
    laps = Laps()
    for number, query in enumerate(queries):
        with (laps if number >= WARM_UP else Laps()).lap():
            engine.grep(query=query, limit=HITS, **asked)
    return laps
