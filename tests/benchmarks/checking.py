"""Goal 14: everything that can be checked again, checked again; and what it takes from whoever writes meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from compaction.engine import CompactionEngine
from conversations.sql import load
from integrity.checker import IntegrityChecker
from integrity.invariants import INVARIANTS, Invariant
from integrity.scans import ScanWorker
from lcmsite.connections import connect
from tests.benchmarks.children import alone, together
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.ingest import BATCH, a_store, appending
from tests.benchmarks.measure import Duel, Laps, blocks, duel, peak_memory_mb
from tests.benchmarks.report import F, Line, at_least, at_most

LAPS = 5
# How long ingest is measured, by itself and beside scans that follow each other.
SECONDS = 15.0
# A goal is said for a million; what is measured here is a tenth of that at most.
SECONDS_FOR_A_MILLION = 30

# All others compare rows with each other; these hash or count texts and rows.
HASHING = {
    "chains_are_unbroken",
    "rows_match_their_seals",
    "references_lead_to_their_files",
    "token_counts_are_recounts",
}
STRUCTURE = tuple(
    each
    for each in INVARIANTS
    if not each.of_the_site and each.code not in HASHING and not each.code.endswith("match_their_hashes")
)
# To count tokens is no matter of hashes, and costs what it costs to append.
HASHES = tuple(each for each in INVARIANTS if not each.is_sampled and not each.of_the_site)
EVERYTHING = tuple(each for each in INVARIANTS if not each.of_the_site)


def checked(sizes: Sequence[int]) -> list[Line]:
    """A compacted conversation of the largest size: its structure, all of it, its memory, and ingest beside it."""
    size = max(sizes)
    conversation_id = _filled(size)
    structure = _by_turns(conversation_id, STRUCTURE, hashes=False)
    hashes = _by_turns(conversation_id, HASHES, hashes=True)
    everything = Laps()
    with everything.lap(size):
        _checked(conversation_id, EVERYTHING)
    seconds = hashes.ours.cost * 1_000_000 / size
    memory = alone(_memory, conversation_id)
    calm = alone(_append, _opened("calm"))
    beside, _ = together(_beside, [("append", _opened("beside")), ("check", conversation_id)])
    return [
        Line("14", f"every structural invariant of {size:,} messages", floor=1000 * structure.floor.cost,
             ours=1000 * structure.ours.cost, unit="ms", ratio=structure.speed, goal=at_least(0.5, F)),
        Line("14", f"and every hash of {size:,} recomputed", floor=1000 * hashes.floor.cost,
             ours=1000 * hashes.ours.cost, unit="ms", ratio=hashes.speed),
        Line("14", "the same, for a million at this rate", ours=seconds, unit="s",
             goal=at_most(SECONDS_FOR_A_MILLION, " s")),
        Line("14", "and every token counted again", ours=everything.rate, unit="msg/s"),
        Line("14", "peak memory of the process that does it all", ours=memory, unit="MB", goal=at_most(250, " MB")),
        Line("14", f"append batches of {BATCH} beside scans; floor: alone", floor=calm.rate, ours=beside.rate,
             unit="msg/s", ratio=beside.rate / calm.rate, goal=at_least(0.8, F)),
    ]  # fmt: skip


def _filled(size: int) -> int:
    store, conversation_id = a_store(), _opened(f"check of {size}")
    for batch in blocks(iter(Corpus(size)), BATCH):
        store.append_messages(conversation_id=conversation_id, messages=batch)
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    # Not above: Django is set up by now.
    from tests.benchmarks.course import analyze

    analyze()
    return conversation_id


def _opened(name: str) -> int:
    return a_store().open_conversation(session_id=name).conversation_id


def _by_turns(conversation_id: int, invariants: tuple[Invariant, ...], *, hashes: bool) -> Duel:
    return duel(
        floor=lambda _: _asked_in_sql(conversation_id, hashes=hashes),
        ours=lambda _: _checked(conversation_id, invariants),
        work=((lap, lap) for lap in range(LAPS + 1)),
    )


def _asked_in_sql(conversation_id: int, *, hashes: bool) -> None:
    """Ask every question of the floor once, on a connection of its own."""
    with connect() as connection:
        for name, question in load("tests/checking_floor.sql").items():
            if hashes or not name.startswith("hashes"):
                connection.execute(question, {"id": conversation_id}).fetchall()


def _checked(conversation_id: int, invariants: tuple[Invariant, ...]) -> None:
    report = IntegrityChecker(invariants=invariants).run(conversation_id=conversation_id)
    assert report.is_clean, report.broken


def _memory(barrier: Any, conversation_id: int) -> float:
    """The most that a process has held by the end of a check of everything, the tokenizer included."""
    barrier.wait()
    _checked(conversation_id, EVERYTHING)
    return peak_memory_mb()


def _append(barrier: Any, conversation_id: int) -> Laps:
    """Batch after batch, for a while."""
    a_store().append_messages(conversation_id=conversation_id, messages=list(Corpus(BATCH, seed=8)))
    barrier.wait()
    until = time.monotonic() + SECONDS
    return appending(conversation_id, size=BATCH, seed=7, goes_on=lambda: time.monotonic() < until)


def _beside(barrier: Any, kind: str, conversation_id: int) -> Laps | None:
    """What each of the two processes does; the checking one goes on for as long as the other appends."""
    if kind == "append":
        return _append(barrier, conversation_id)
    barrier.wait()
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        scan = IntegrityChecker().request(conversation_id=conversation_id)
        ScanWorker.from_settings().work(scan_id=scan.scan_id)
    return None
