"""Goals 5, 6, 7, 9 and 13 over HTTP: what our site answers, served as `lcm up` serves it, beside the same call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from conversations.models import Summary
from conversations.types import SummaryKind
from lcmsite.types import KeyScope
from retrieval.assembler import ContextAssembler
from retrieval.engine import RetrievalEngine
from tests.benchmarks.http import our_site
from tests.benchmarks.ingest import Pair, a_store
from tests.benchmarks.load import Connection, question
from tests.benchmarks.measure import by_passes
from tests.benchmarks.reading import BUDGET, CAP, LAPS
from tests.benchmarks.report import Line, at_most
from tests.benchmarks.search import HITS, Cells, patterns, queries_of

API = "/api/v1"
PASSES = 3


@dataclass(frozen=True)
class Work:
    """A call, where the same is asked over HTTP, with which params (some of them in the path), and the goal's limit."""

    number: str
    name: str
    call: Callable[..., object]
    path: str
    asked: list[dict[str, Any]]
    limit: float

    def request(self, params: dict[str, Any], *, key: str) -> bytes:
        in_query = {name: value for name, value in params.items() if f"{{{name}}}" not in self.path}
        return question(API + self.path.format(**params), in_query, key=key)


def read_over_http(size: int, pair: Pair, cells: Cells) -> list[Line]:
    """Ask a compacted conversation over one connection; each goal is that of the call."""
    lines = []
    with our_site(KeyScope.READ) as site:
        connection = Connection(site.port)
        for work in _works(size, pair, cells):
            found = by_passes(
                floor=lambda piece, work=work: work.call(**piece[0]),
                ours=lambda piece: connection.ask(piece[1]),
                pieces=[(params, work.request(params, key=site.key)) for params in work.asked],
                passes=PASSES,
            )
            lines.append(
                Line(work.number, f"{work.name} at {size:,}, HTTP, p50; floor: the call", unit="ms",
                     floor=1000 * found.floor.cost, ours=1000 * found.ours.cost, goal=at_most(work.limit, " ms"))
            )  # fmt: skip
        connection.close()
    return lines


def _works(size: int, pair: Pair, cells: Cells) -> Iterator[Work]:
    engine = RetrievalEngine.from_settings(a_store().scope)
    grep = partial(engine.grep, conversation_id=pair.ours)
    matches = f"/conversations/{pair.ours}/matches/"
    for sort, number, limit in (("recency", "5", 6), ("relevance", "6", 18)):
        for band in dict.fromkeys(band for band, _ in cells):
            asked = [{"query": query, "sort": sort, "limit": HITS} for query in queries_of(band, cells)]
            yield Work(number, f"grep {band} words by {sort}", grep, matches, asked, limit)
    pattern, _ = patterns(size)["frequent"]
    yield Work("7", "regex, frequent,", grep, matches, [{"query": pattern, "mode": "regex", "limit": HITS}] * LAPS, 4)

    assemble = partial(ContextAssembler.from_settings(a_store().scope).assemble, conversation_id=pair.ours)
    yield Work(
        "9", "assemble, compacted,", assemble, f"/conversations/{pair.ours}/context/", [{"budget": BUDGET}] * LAPS, 4
    )

    summaries = Summary.objects.filter(conversation_id=pair.ours).order_by("-depth", "first_seq")
    leaves = [leaf.summary_id for leaf in summaries.filter(kind=SummaryKind.LEAF)[:LAPS]]
    top = {"summary_id": summaries[0].summary_id, "include_messages": False, "token_cap": CAP}
    below = [{"summary_id": leaf, "include_messages": True, "token_cap": CAP} for leaf in leaves]
    expansion = "/summaries/{summary_id}/expansion/"
    yield Work("13", "expand the top", engine.expand, expansion, [top] * LAPS, 4)
    yield Work("13", "expand a leaf", engine.expand, expansion, below, 4)
    yield Work("13", "describe a leaf", engine.describe, "/items/{id}/", [{"id": leaf} for leaf in leaves], 3)
