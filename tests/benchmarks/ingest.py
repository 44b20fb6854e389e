"""Goals 1, 2 and 4: messages appended one by one and in batches, by one writer and by four, calm and under pressure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from conversations.models import Workspace
from conversations.scope import Scope
from conversations.store.conversations import ConversationStore
from conversations.types import NewMessage
from tests.benchmarks.children import together
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.floor import Floor, Row, four_characters, rows_of
from tests.benchmarks.measure import Duel, Laps, blocks, duel
from tests.benchmarks.report import BEYOND_F, F, Line, at_least, at_most, growth, rates
from tests.statements import counted_statements

BATCH = 100
SINGLES_IN_A_LAP = 25
SINGLE_LAPS = 24
SINGLES = SINGLES_IN_A_LAP * SINGLE_LAPS

WRITERS = 4
WRITER_BATCHES = 10
WRITER_ROUNDS = 4


@dataclass
class Pair:
    """The same history twice: one conversation that LCM fills, one that plain SQL fills."""

    ours: int
    floor: int

    @classmethod
    def opened(cls, name: str, **overrides: Any) -> Pair:
        store = a_store()
        ours, floor = (
            store.open_conversation(session_id=f"{name} {who}", overrides=overrides).conversation_id
            for who in ("ours", "floor")
        )
        return cls(ours=ours, floor=floor)


def a_store() -> ConversationStore:
    return ConversationStore.from_settings(Scope(Workspace.objects.get_or_create(name="bench")[0].pk))


def appending(conversation_id: int, *, size: int, seed: int, goes_on: Callable[[], bool]) -> Laps:
    """Append batch after batch for as long as it goes on."""
    store, laps, messages = a_store(), Laps(), iter(Corpus(1_000_000, seed=seed))
    while goes_on():
        batch = list(islice(messages, size))
        with laps.lap(len(batch)):
            store.append_messages(conversation_id=conversation_id, messages=batch)
    return laps


@dataclass
class Writing:
    """One writer that appends to a pair by turns.

    `count`: the floor's tokens. Where the histories are to be compacted and assembled, they are counted as ours are, or
    the floor would have fewer and larger chunks of the same messages.
    """

    pair: Pair
    store: ConversationStore = field(default_factory=a_store)
    floor: Floor = field(default_factory=Floor)
    count: Callable[[str], int] = four_characters

    def singly(self, messages: Sequence[NewMessage]) -> Duel:
        return duel(
            floor=self._floor_one_by_one,
            ours=self._ours_one_by_one,
            work=((self._rows(block), block) for block in blocks(messages, SINGLES_IN_A_LAP)),
        )

    def in_batches(self, messages: Iterator[NewMessage], *, warm_up: int = 0) -> Duel:
        return duel(
            floor=lambda rows: self.floor.append_many(self.pair.floor, rows),
            ours=lambda batch: self.store.append_messages(conversation_id=self.pair.ours, messages=batch),
            work=((self._rows(batch), batch) for batch in blocks(messages, BATCH)),
            warm_up=warm_up,
        )

    def _rows(self, messages: Sequence[NewMessage]) -> list[Row]:
        return rows_of(messages, count=self.count)

    def _floor_one_by_one(self, rows: list[Row]) -> None:
        for row in rows:
            self.floor.append_one(self.pair.floor, row)

    def _ours_one_by_one(self, messages: list[NewMessage]) -> None:
        for message in messages:
            self.store.append_messages(conversation_id=self.pair.ours, messages=[message])


@dataclass
class Ingest:
    """What it came to, by the size at which it was measured."""

    singles: dict[int, Duel] = field(default_factory=dict)
    batches: dict[int, Duel] = field(default_factory=dict)


def filled(sizes: Sequence[int], *, pair: Pair) -> Ingest:
    """Fill a pair up to the largest size, and measure on the way as each size is reached."""
    found = Ingest()
    writing = Writing(pair)
    corpus = iter(Corpus(max(sizes)))
    there = 0
    for size in sizes:
        batches = writing.in_batches(islice(corpus, size - SINGLES - there), warm_up=0 if there else 1)
        # Where it has got to, not how it got there.
        found.batches[size] = Duel(
            *(Laps(laps.seconds[-100:], laps.done[-100:]) for laps in (batches.floor, batches.ours))
        )
        found.singles[size] = writing.singly(list(islice(corpus, SINGLES)))
        there = size
    return found


def lines_of(found: Ingest) -> list[Line]:
    """Goals 1 and 2 for one writer."""
    smallest, largest = min(found.singles), max(found.singles)
    lines = [rates("1", f"append one, at {size:,}", one, at_least(0.6, F)) for size, one in found.singles.items()]
    kept = [
        getattr(found.singles[largest], who).rate / getattr(found.singles[smallest], who).rate
        for who in ("floor", "ours")
    ]
    work = f"append one, rate at {largest:,} to that at {smallest:,}"
    lines.append(Line("1", work, floor=kept[0], ours=kept[1], ratio=kept[1] / kept[0], goal=at_least(0.9, F)))
    lines += [rates("2", f"append 100, at {size:,}", many, at_least(0.75, F)) for size, many in found.batches.items()]
    lines += growth("2", "append 100", found.batches, at_most(0.1, BEYOND_F))
    return lines


def under_pressure() -> list[Line]:
    """Goal 1 where every append finds the conversation in want of compaction, and a job that waits already."""
    pair = Pair.opened("pressed", max_active_messages=200)
    writing = Writing(pair)
    corpus = iter(Corpus(1000 + SINGLES, seed=2))
    writing.in_batches(islice(corpus, 1000))
    return [rates("1", "append one, under pressure, a job waiting", writing.singly(list(corpus)), at_least(0.6, F))]


def counting_tokens(found: Ingest) -> list[Line]:
    """Goal 4: what counting tokens exactly takes of the time of an append."""
    messages = list(Corpus(1000, seed=3))
    texts = [row.content for row in rows_of(messages)]
    counter = a_store().tokens
    laps = Laps()
    for block in blocks(texts, 100):
        with laps.lap(len(block)):
            for text in block:
                counter.count(text)
    largest = max(found.singles)
    shares = (("one", found.singles[largest], at_most(10, " %")), ("100", found.batches[largest], at_most(25, " %")))
    return [
        Line("4", f"counting tokens, share of append {name}", ours=100 * laps.cost / run.ours.cost, unit="%", goal=goal)
        for name, run, goal in shares
    ]


def evaluating_pressure() -> list[Line]:
    """Goal 8: what asking whether there is pressure adds to an append, in statements."""
    store, pair = a_store(), Pair.opened("calm")
    [message] = Corpus(1, seed=9)
    with counted_statements() as sent:
        store.append_messages(conversation_id=pair.ours, messages=[message])
    return [Line("8", "evaluating pressure after an append, statements", ours=len(sent) - 1, goal=at_most(0, ""))]


def four_writers(found: Ingest) -> list[Line]:
    """Goal 2 with four processes, each with a conversation of its own: all of them on our path, or all on the floor."""
    pairs = [Pair.opened(f"writer {number}") for number in range(WRITERS)]
    reports = together(write_beside_others, [(pair, number) for number, pair in enumerate(pairs)])
    duels = Duel()
    for phase in range(2 * WRITER_ROUNDS):
        begun, ended = min(each[phase][0] for each in reports), max(each[phase][1] for each in reports)
        laps = duels.ours if phase % 2 else duels.floor
        laps.seconds.append(ended - begun)
        laps.done.append(WRITERS * WRITER_BATCHES * BATCH)
    largest = max(found.batches)
    line = rates("2", f"append 100, {WRITERS} writers", duels, at_least(0.75, F))
    more = [getattr(duels, who).rate / getattr(found.batches[largest], who).rate for who in ("floor", "ours")]
    return [line, Line("2", f"{WRITERS} writers to one", floor=more[0], ours=more[1], unit="x")]


def write_beside_others(barrier: Any, pair: Pair, number: int) -> list[tuple[float, float]]:
    """In a process of its own: the floor's work and ours by turns, all writers at once. When each began and ended."""
    writing = Writing(pair)
    batches = list(blocks(Corpus(WRITER_BATCHES * BATCH, seed=10 + number), BATCH))
    rows = [rows_of(batch) for batch in batches]
    # Each connects, loads its tokenizer and has its statements prepared before anybody is timed.
    for _ in range(2):
        writing.in_batches(iter(batches[0]))
    times = []
    for phase in range(2 * WRITER_ROUNDS):
        barrier.wait()
        begun = time.monotonic()
        for place in range(WRITER_BATCHES):
            if phase % 2:
                writing.store.append_messages(conversation_id=pair.ours, messages=batches[place])
            else:
                writing.floor.append_many(pair.floor, rows[place])
        times.append((begun, time.monotonic()))
    return times
