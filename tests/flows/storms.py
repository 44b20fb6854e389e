"""What goes wrong in a storm: a model that fails now and then, and workers that are killed."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.utils import timezone

from compaction.models import CompactionJob
from compaction.summarizing.extractive.clean_text import clean
from compaction.summarizing.prompts import TEMPLATES
from compaction.types import JobState
from conversations.types import Level
from tests.compaction.vendor import Asked, chats, failing, good, resets, summary_of
from tests.flows.processes import start, stop, wait_until

# Settings under which a conversation is under pressure soon and a run makes many small summaries.
TIGHT = {
    "model_token_budget": 4000,
    "leaf_chunk_tokens": 600,
    "leaf_target_tokens": 100,
    "condensed_target_tokens": 150,
    "max_active_messages": 60,
}
# A model is asked, and a silent worker's job is soon another's.
STORMY = {
    **TIGHT,
    "job_lease_seconds": 3,
    "summarizer": "chat",
    "chat_model": "asked-model",
    "model_timeout_seconds": 5,
    "model_attempts": 2,
    "spend_max_calls": 0,
}
# How long the vendor's model thinks: long enough for kills and a shutdown to find somebody waiting for it.
SECONDS_TO_THINK = 0.1


@dataclass(frozen=True)
class Storm:
    """How much goes wrong, and for how long."""

    seconds: float
    writers: int
    conversations: int
    workers: int
    kills: int
    # Between two appends of one writer, in seconds.
    pause: float
    # How the database goes down: at once, or without a farewell.
    blow: signal.Signals = signal.SIGINT


def hangs_a_while(asked: Asked) -> None:
    """Says nothing for some time, less than anybody would wait, and then breaks the connection off."""
    asked.closing.wait(0.5)
    resets(asked)


class Unreliable:
    """A model that fails one call in three, each time in another way, and remembers what it wrote in the others."""

    FAILURES = (failing(500), resets, hangs_a_while, chats)

    def __init__(self) -> None:
        self.failures = 0
        # Each text with the levels that it was asked for at.
        self.written: dict[str, set[Level]] = {}
        self._calls = itertools.count(1)

    def __call__(self, asked: Asked) -> None:
        call = next(self._calls)
        asked.closing.wait(SECONDS_TO_THINK)
        if call % 3 == 0:
            self.failures += 1
            self.FAILURES[call // 3 % len(self.FAILURES)](asked)
        else:
            self.written.setdefault(clean(summary_of(asked)).strip(), set()).add(_level_of(asked))
            good(asked)


def _level_of(asked: Asked) -> Level:
    [level] = {level for level, task in _TASKS if task in asked.system}
    return level


_TASKS = [
    (level, file.read_text(encoding="utf-8").strip())
    for level in (Level.NORMAL, Level.AGGRESSIVE)
    for file in TEMPLATES.glob(f"*_{level.value}.txt")
]


class Workers:
    """Worker processes as `lcm up` runs them, killed and started again."""

    def __init__(self, count: int, **settings: object) -> None:
        self._settings = settings
        self._chance = random.Random(count)
        self._running = [self._start() for _ in range(count)]

    def kill_one(self) -> None:
        """Without a farewell, while there is work in somebody's hands; another one takes its place."""
        at_work = CompactionJob.objects.filter(state=JobState.LEASED, run_after__lte=timezone.now())
        wait_until(at_work.exists, seconds=60, what="a worker is at work")
        place = self._chance.randrange(len(self._running))
        self._running[place].kill()
        self._running[place].wait()
        self._running[place] = self._start()

    def stop(self) -> None:
        stop(self._running)

    def _start(self) -> subprocess.Popen[bytes]:
        return start("-m", "lcmsite.ops.processes", str(os.getpid()), "worker", "compaction", **self._settings)


@contextmanager
def working(count: int, **settings: object) -> Iterator[Workers]:
    workers = Workers(count, **settings)
    try:
        yield workers
    finally:
        workers.stop()
