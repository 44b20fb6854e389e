"""What goes wrong in a storm: a model that fails now and then, and workers that are killed."""

from __future__ import annotations

import itertools
import random
import signal
import subprocess
from dataclasses import dataclass

from django.db.models.functions import Now

from compaction.models import CompactionJob
from compaction.summarizing.extractive.clean_text import clean
from compaction.types import JobState
from conversations.types import Level
from tests.compaction.vendor import Asked, chats, failing, good, resets, summary_of
from tests.flows.processes import start_worker, stop
from tests.flows.vendors import level_asked

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
            self.written.setdefault(clean(summary_of(asked)).strip(), set()).add(level_asked(asked))
            good(asked)


class Workers:
    """Worker processes for the time of a block, killed and started again; none of them is left behind."""

    def __init__(self, count: int, queue: str = "compaction", **settings: object) -> None:
        self._count = count
        self._queue = queue
        self._settings = settings
        self._chance = random.Random(count)
        self.running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Workers:
        self.running = [start_worker(self._queue, **self._settings) for _ in range(self._count)]
        return self

    def __exit__(self, *_: object) -> None:
        stop(self.running)

    def is_one_at_work(self) -> bool:
        """Whether a worker has a job in its hands."""
        return CompactionJob.objects.filter(state=JobState.LEASED, run_after__lte=Now()).exists()

    def kill_one(self) -> None:
        """Without a farewell; another one takes its place."""
        place = self._chance.randrange(len(self.running))
        self.running[place].kill()
        self.running[place].wait()
        self.running[place] = start_worker(self._queue, **self._settings)
