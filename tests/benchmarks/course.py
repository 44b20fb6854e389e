"""The course of one run: what is measured, in which order, on which conversations."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from django.db import connection

from conversations.types import SummaryKind
from lcmsite.ops.processes import freeze_loaded
from tests.benchmarks import (
    beside,
    checking,
    compaction,
    host_hook,
    http,
    http_reading,
    ingest,
    reading,
    resident,
    search,
    sqlite,
    through_gateway,
    vectors,
)
from tests.benchmarks.corpus import MEDIAN_OF_LONG, Corpus
from tests.benchmarks.report import Line, table, verdict
from tests.benchmarks.weather import weather


def run(sizes: Sequence[int], *, only: Sequence[str] = (), passages: int = 10_000) -> None:
    """Measure everything, or the chapters named, and print the table."""
    chapters: dict[str, Callable[[Sequence[int]], list[Line]]] = {
        "ingest": _ingest,
        "http": _over_http,
        "history": _histories,
        "long": _long_messages,
        "check": checking.checked,
        "vectors": lambda _: vectors.searched(passages),
        "gateway": lambda _: through_gateway.through_gateway(),
        "hook": lambda _: host_hook.hooked(),
        "memory": lambda _: resident.resident(),
    }
    names = only or list(chapters)
    # As every process of LCM does: what is loaded by now stays.
    gc.collect()
    freeze_loaded()
    looks = [weather()]
    lines: list[Line] = []
    for name, chapter in chapters.items():
        if name in names:
            with _timed(name):
                found = chapter(sizes)
            looks.append(weather())
            pace = (looks[-2].pace + looks[-1].pace) / 2
            lines += [replace(line, pace=pace) for line in found]
    print(table(lines))
    print(verdict(lines))
    print(f"Weather on {os.cpu_count()} cores, before and after each chapter:", "; ".join(map(str, looks)))


def _ingest(sizes: Sequence[int]) -> list[Line]:
    found = ingest.filled(sizes, pair=ingest.Pair.opened("ingest"))
    return [
        *ingest.lines_of(found),
        *ingest.under_pressure(),
        *ingest.four_writers(found),
        *ingest.counting_tokens(found),
        *ingest.evaluating_pressure(),
        *sqlite.appended(),
        *beside.beside_compaction(),
    ]


def _over_http(_: Sequence[int]) -> list[Line]:
    # Else autovacuum comes for what the chapter before has written, and takes one of the cores.
    analyze()
    return http.over_http()


def _histories(sizes: Sequence[int]) -> list[Line]:
    """Conversations of each size: as they are, with leaves only, and compacted to the end."""
    count = ingest.a_store().tokens.count
    made: dict[int, list[compaction.Figures]] = {}
    read = reading.Reading()
    lines: list[Line] = []
    for size in sizes:
        pair = ingest.Pair.opened(f"history of {size}")
        ingest.Writing(pair, count=count).in_batches(iter(Corpus(size)))
        analyze()
        read.assemble("uncompacted", size, pair)
        leaves = compaction.compacted(pair, SummaryKind.LEAF)
        analyze()
        read.assemble(reading.DELIVERED, size, pair)
        made[size] = [leaves, compaction.compacted(pair, SummaryKind.CONDENSED)]
        analyze()
        read.assemble("compacted", size, pair)
        read.open(size, pair)
        lines += reading.everything_read_back(size, pair)
        if size == max(sizes):
            cells = search.queries_for(size, pair)
            lines += search.searched(size, pair, cells)
            lines += sqlite.searched(size, pair, cells)
            lines += http_reading.read_over_http(size, pair, cells)
    return [*compaction.lines_of(made), *read.lines(), *lines]


def _long_messages(sizes: Sequence[int]) -> list[Line]:
    """Search in as many messages as the longest history has, each about six times as long."""
    size, pair = max(sizes), ingest.Pair.opened("long messages")
    corpus = Corpus(size, median_characters=MEDIAN_OF_LONG)
    ingest.Writing(pair, count=ingest.a_store().tokens.count).in_batches(iter(corpus))
    analyze()
    return search.searched(size, pair, search.queries_for(size, pair), of=" long")


def analyze() -> None:
    """What autovacuum would do in a quiet minute, which a measurement does not have."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


@contextmanager
def _timed(name: str) -> Iterator[None]:
    started = time.monotonic()
    print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
    yield
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
