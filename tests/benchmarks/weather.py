"""What the figures of a run depend on beside LCM: how fast this machine is just now, how busy, how slow its disk.

The goals that stand in milliseconds or in messages a second were set on one machine, whose speed at three plain works
(a read by primary key, words into a search vector, text into tokens by tiktoken) was measured with them. The same
works, done here before and after each chapter, say what pace such a goal is to be read at: at a pace of 0.5, 3 ms there
are 6 ms here.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings

from conversations.content.tokens import reference
from lcmsite.connections import connect
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.floor import rows_of
from tests.benchmarks.measure import Laps

# There: seconds for a prepared read of one row by its key; bytes, and tokens, that one core takes in a second.
SECONDS_FOR_A_ROW = 34e-6
BYTES_INTO_WORDS = 8.8e6
TOKENS = 4.0e6

LAPS = 7
READS = 200
MESSAGES = 300


@dataclass(frozen=True)
class Weather:
    """One look. `pace` is this machine's speed as a share of that on which the goals were set."""

    load: float
    sync_ms: float
    pace: float

    def __str__(self) -> str:
        return f"load {self.load:.2f}, fdatasync {self.sync_ms:.2f} ms, pace {self.pace:.2f}"


def weather() -> Weather:
    load = float(Path("/proc/loadavg").read_text().split()[0])
    return Weather(load=load, sync_ms=1000 * _sync_seconds(), pace=_pace())


def _sync_seconds() -> float:
    """What it takes the disk to keep a page."""
    directory = settings.DATA_DIR if settings.EMBEDDED_DATABASE else None
    with tempfile.TemporaryFile(dir=directory) as file:
        os.pwrite(file.fileno(), bytes(8192), 0)

        def keep() -> None:
            os.pwrite(file.fileno(), bytes(8192), 0)
            os.fdatasync(file.fileno())

        return _median_seconds(keep, laps=50)


def _pace() -> float:
    texts = [row.content for row in rows_of(Corpus(MESSAGES, seed=11))]
    size = sum(len(text.encode()) for text in texts)
    # By the tokenizer that was timed there: what LCM counts with is another, and many times as quick.
    tokenizer = reference("o200k_base")
    tokens = sum(len(tokenizer.encode_ordinary(text)) for text in texts)
    with connect() as connection:
        connection.execute("CREATE TEMPORARY TABLE paces (id bigint PRIMARY KEY, row text)")
        connection.execute("INSERT INTO paces SELECT id, repeat('x', 100) FROM generate_series(1, 1000) AS id")
        read = partial(connection.execute, "SELECT row FROM paces WHERE id = %s", (500,), prepare=True)
        into_words = "SELECT sum(length(to_tsvector('english', text))) FROM unnest(%s::text[]) AS text"

        row = _median_seconds(lambda: read().fetchone(), laps=READS)
        words = _median_seconds(lambda: connection.execute(into_words, (texts,)).fetchone(), laps=LAPS)
    counted = _median_seconds(lambda: [tokenizer.encode_ordinary(text) for text in texts], laps=LAPS)
    return statistics.median([SECONDS_FOR_A_ROW / row, size / words / BYTES_INTO_WORDS, tokens / counted / TOKENS])


def _median_seconds(work: Callable[[], Any], *, laps: int) -> float:
    found = Laps()
    for _ in range(laps):
        with found.lap():
            work()
    return found.cost
