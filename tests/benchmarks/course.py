"""The course of one run: what is measured, in which order, on which conversations."""

from __future__ import annotations

import gc
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.db import connection

from conversations.types import SummaryKind
from tests.benchmarks import beside, checking, compaction, http, ingest, reading, resident, search
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.report import Line, table, verdict


def run(sizes: Sequence[int], *, only: Sequence[str] = ()) -> None:
    """Measure everything, or the chapters named, and print the table."""
    chapters: dict[str, Callable[[Sequence[int]], list[Line]]] = {
        "ingest": _ingest,
        "http": lambda _: http.over_http(),
        "history": _histories,
        "check": checking.checked,
        "memory": lambda _: resident.resident(),
    }
    # As every process of LCM does: what is loaded by now stays.
    gc.collect()
    gc.freeze()
    weather = [_weather()]
    lines: list[Line] = []
    for name, chapter in chapters.items():
        if not only or name in only:
            with _told(name):
                lines += chapter(sizes)
            weather.append(_weather())
    print(table(lines))
    print(verdict(lines))
    print("Weather before and after each chapter:", "; ".join(weather))


def _ingest(sizes: Sequence[int]) -> list[Line]:
    found = ingest.filled(sizes, pair=ingest.Pair.opened("ingest"))
    return [
        *ingest.lines_of(found),
        *ingest.under_pressure(),
        *ingest.four_writers(found),
        *ingest.counting_tokens(found),
        *ingest.evaluating_pressure(),
        *beside.beside_compaction(),
    ]


def _histories(sizes: Sequence[int]) -> list[Line]:
    """Conversations of each size: as they are, with leaves only, and compacted to the end."""
    made: dict[int, compaction.Figures] = {}
    read = reading.Reading()
    lines: list[Line] = []
    for size in sizes:
        pair = ingest.Pair.opened(f"history of {size}")
        ingest.Writing(pair).in_batches(iter(Corpus(size)))
        analyze()
        read.assemble("uncompacted", size, pair)
        leaves = compaction.compacted(pair, SummaryKind.LEAF)
        analyze()
        read.assemble(reading.DELIVERED, size, pair)
        made[size] = leaves + compaction.compacted(pair, SummaryKind.CONDENSED)
        analyze()
        read.assemble("compacted", size, pair)
        read.open(size, pair)
        lines += reading.everything_read_back(size, pair)
        if size == max(sizes):
            lines += search.searched(size, pair)
    return [*compaction.lines_of(made), *read.lines(), *lines]


def analyze() -> None:
    """What autovacuum would do in a quiet minute, which a measurement does not have."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _weather() -> str:
    """How busy the machine is, and what it takes its disk to keep a page: the two that figures depend on most."""
    directory = settings.DATA_DIR if settings.EMBEDDED_DATABASE else None
    with tempfile.TemporaryFile(dir=directory) as file:
        taken = []
        for _ in range(50):
            os.pwrite(file.fileno(), bytes(8192), 0)
            started = time.perf_counter()
            os.fdatasync(file.fileno())
            taken.append(1000 * (time.perf_counter() - started))
    load = Path("/proc/loadavg").read_text().split()[0]
    return f"load {load} on {os.cpu_count()} cores, fdatasync {statistics.median(taken):.2f} ms"


@contextmanager
def _told(name: str) -> Iterator[None]:
    started = time.monotonic()
    print(f"{name} ...", end=" ", file=sys.stderr, flush=True)
    yield
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
