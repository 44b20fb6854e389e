"""Goals 9, 12 and 13: contexts assembled, summaries opened and described, and every word of a history read back."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from conversations.content.flattening import flattened
from conversations.models import ContextItem, Summary
from conversations.types import ContextItemType, SummaryKind
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from retrieval.types import ExpandResult, ItemKind
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.floor import SQL, Floor
from tests.benchmarks.ingest import Pair, a_store
from tests.benchmarks.measure import Duel, Laps, duel
from tests.benchmarks.report import BEYOND_F, Line, at_least, at_most, growth, milliseconds
from tests.retrieval.lineages import pages

BUDGET = 128_000
DELIVERED = f"{BUDGET // 1000}k tokens of leaves"
CAP = 4_000
LAPS = 40
LEAVES = 20
# What other machines take of this one comes in bursts of some seconds: what takes milliseconds is timed in rounds.
ROUNDS = 5
# So many messages are read back at least, however short the history is.
AS_MANY = 60_000


class ReadingFloor(Floor):
    """Reads the same texts in plain prepared SQL, with nothing in between."""

    def assemble(self, conversation_id: int, *, budget: int, items: int) -> int:
        """The texts of so many of the newest items, as far as they fit; their tokens."""
        tokens = 0
        for row in self.rows("newest_items", (conversation_id, items)):
            if tokens + row[1] > budget:
                break
            tokens += row[1]
        return tokens

    def expand_summaries(self, summary_id: str) -> None:
        self.rows("summary", (summary_id,))
        self.rows("sources", (summary_id,))

    def expand_messages(self, summary_id: str, *, messages: int) -> None:
        self.rows("summary", (summary_id,))
        found = self.rows("messages", (summary_id, messages))
        self.rows("parts", ([row[0] for row in found],))

    def describe(self, summary_id: str) -> None:
        self.rows("summary", (summary_id,))
        self.rows("links", {"id": summary_id})

    def everything(self, summary_id: str) -> Iterator[tuple[Any, ...]]:
        """Every message below a summary, oldest first, without its parts."""
        with self.connection.transaction(), self.connection.cursor(name="everything") as cursor:
            cursor.itersize = 2000
            yield from cursor.execute(SQL["everything"], (summary_id,))


@dataclass
class Reading:
    """What reading came to, by state or verb and by size."""

    assembled: dict[str, dict[int, Duel]] = field(default_factory=dict)
    opened: dict[str, dict[int, Duel]] = field(default_factory=dict)
    floor: ReadingFloor = field(default_factory=ReadingFloor)

    def assemble(self, state: str, size: int, pair: Pair) -> None:
        """Assemble our conversation, and the same items by the floor."""
        assembler = ContextAssembler.from_settings(a_store().scope)
        found = assembler.assemble(conversation_id=pair.ours, budget=BUDGET)
        if state == DELIVERED and found.total_tokens < 0.9 * BUDGET:
            # Too short a history to fill the budget.
            return
        self.assembled.setdefault(state, {})[size] = self._by_turns(
            lambda _: self.floor.assemble(pair.ours, budget=BUDGET, items=len(found.items) + 1),
            lambda _: assembler.assemble(conversation_id=pair.ours, budget=BUDGET),
            range(LAPS),
        )

    def open(self, size: int, pair: Pair) -> None:
        """Expand and describe the summary on top, and leaves from all over the conversation."""
        engine = RetrievalEngine.from_settings(a_store().scope)
        [top] = Summary.objects.filter(conversation_id=pair.ours).order_by("-depth", "first_seq")[:1]
        every = Summary.objects.filter(conversation_id=pair.ours, kind=SummaryKind.LEAF).order_by("first_seq")
        leaves = [leaf.summary_id for leaf in every[:: max(1, every.count() // LEAVES)]]
        tops = [top.summary_id] * LAPS

        def expand(include_messages: bool) -> Callable[[str], Any]:
            return lambda id: engine.expand(summary_id=id, include_messages=include_messages, token_cap=CAP)

        floor = self.floor
        shown = len(expand(True)(leaves[0]).items)
        verbs: dict[str, tuple[Callable[[str], Any], Callable[[str], Any], list[str]]] = {
            "expand the top": (floor.expand_summaries, expand(False), tops),
            "expand a leaf": (lambda id: floor.expand_messages(id, messages=shown), expand(True), leaves * 2),
            "describe the top": (floor.describe, lambda id: engine.describe(id=id), tops),
            "describe a leaf": (floor.describe, lambda id: engine.describe(id=id), leaves * 2),
        }
        for _ in range(ROUNDS):
            for verb, (by_floor, by_us, ids) in verbs.items():
                found = self.opened.setdefault(verb, {}).setdefault(size, Duel())
                found += self._by_turns(by_floor, by_us, ids)

    def _by_turns(self, floor: Callable[[Any], Any], ours: Callable[[Any], Any], pieces: Iterable[Any]) -> Duel:
        return duel(floor=floor, ours=ours, work=((piece, piece) for piece in pieces), warm_up=5)

    def lines(self) -> list[Line]:
        lines = []
        limits = {"compacted": 4, DELIVERED: 10, "uncompacted": 25}
        for state, by_size in self.assembled.items():
            lines += _by_size("9", f"assemble, {state}", by_size, limit=limits[state], most_growth=0.3)
        for verb, by_size in self.opened.items():
            lines += _by_size("13", verb, by_size, limit=4 if verb.startswith("expand") else 3, most_growth=0.1)
        return lines


def _by_size(number: str, work: str, by_size: dict[int, Duel], *, limit: float, most_growth: float) -> list[Line]:
    goal = at_most(limit, " ms")
    lines = [milliseconds(number, f"{work}, at {size:,}, p50", each, goal) for size, each in by_size.items()]
    return lines + growth(number, work, by_size, at_most(most_growth, BEYOND_F))


def everything_read_back(size: int, pair: Pair) -> list[Line]:
    """Goal 12: every message, oldest first, compared with what was said; by way of the summaries, and by the page."""
    items = ContextItem.objects.filter(conversation_id=pair.ours).order_by("ordinal")
    roots = [item.summary_id for item in items if item.item_type == ContextItemType.SUMMARY]
    reader = ReadingFloor()
    goal = at_least(40_000, " msg/s")
    # The first time only warms up, as of everything that is measured; a short history is read often enough to be timed.
    rounds = [Laps(), *[Laps()] * max(1, AS_MANY // size)]
    for floor in rounds:
        with floor.lap(size):
            read = sum(1 for root in roots for _ in reader.everything(root or ""))
        # What is not below a root is still raw; the floor has read a little less.
        floor.done[-1] = read
    lines = []
    for way, walk in (("expand with cursors", _expanded), ("listed by the thousand", _listed)):
        rounds = [Laps() for _ in range(1 + max(1, AS_MANY // size))]
        for laps in rounds:
            texts = walk(pair.ours, roots, laps)
            for place, (message, text) in enumerate(zip(Corpus(size), texts, strict=True), start=1):
                assert flattened(message.parts) == text, f"{way}: message {place} is not what was said"
        rate = size / statistics.median(laps.total for laps in rounds[1:])
        ratio = rate / floor.rate
        lines.append(Line("12", f"{size:,} read back: {way}", floor=floor.rate, ours=rate, unit="msg/s",
                          ratio=ratio, goal=goal))  # fmt: skip
    return lines


def _expanded(conversation_id: int, roots: list[str | None], laps: Laps) -> Iterator[str]:
    """Every text below the roots, and the raw ones between and behind them."""
    engine = RetrievalEngine.from_settings(a_store().scope)
    engine = replace(engine, policy=replace(engine.policy, max_expand_tokens=1_000_000))
    texts: dict[int, str] = {}

    def expand(**asked: Any) -> ExpandResult:
        with laps.lap():
            return engine.expand(**asked)

    for root in roots:
        for page in pages(expand, summary_id=root, depth=-1, include_messages=True):
            for item in page.items:
                if item.kind is ItemKind.MESSAGE:
                    texts[item.first_seq] = texts.get(item.first_seq, "") + item.content
    raw = ContextItem.objects.filter(conversation_id=conversation_id, message__isnull=False)
    with laps.lap():
        texts.update(raw.values_list("ordinal", "message__content"))
    for seq in sorted(texts):
        yield texts[seq]


def _listed(conversation_id: int, roots: list[str | None], laps: Laps) -> Iterator[str]:
    store = a_store()
    after = 0
    while True:
        with laps.lap():
            page = store.list_messages(conversation_id=conversation_id, after_seq=after, limit=1000)
        if not page:
            return
        for record in page:
            yield record.content
        after = page[-1].seq
