"""Goal 15: what a web process and a worker keep in memory, idle and after work."""

from __future__ import annotations

from collections.abc import Sequence

import psutil
from django_huey import get_queue

from compaction.engine import CompactionEngine
from compaction.types import JobState
from lcmsite.types import KeyScope
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.http import Site, our_site
from tests.benchmarks.ingest import Pair, Writing
from tests.benchmarks.load import Connection, send_all
from tests.benchmarks.measure import blocks
from tests.benchmarks.report import Line, at_most
from tests.flows.processes import wait_until
from tests.flows.storms import Workers

APPENDED_OVER_HTTP = 10_000
BACKLOG = 20_000


def resident() -> list[Line]:
    """A web process that takes in messages, and a worker that compacts a backlog, weighed before and after."""
    # What the other chapters have left to do would keep the worker from being idle.
    get_queue("compaction").flush()
    with Workers(1) as workers, our_site(KeyScope.WRITE) as site:
        idle = largest(site.pids), largest([workers.running[0].pid])
        _append(site)
        _compact()
        after = largest(site.pids), largest([workers.running[0].pid])
    return [
        Line("15", f"resident memory of one {name}, {when}", ours=megabytes, unit="MB", goal=at_most(most, " MB"))
        for when, found, most in (("idle", idle, 150), ("after work", after, 250))
        for name, megabytes in zip(("web process", "worker"), found, strict=True)
    ]


def _append(site: Site) -> None:
    pair = Pair.opened("memory over http")
    requests = site.appends(pair.ours, list(blocks(Corpus(APPENDED_OVER_HTTP, seed=7), 100)))
    connections = [Connection(site.port) for _ in range(4)]
    send_all(connections, [iter(requests[place::4]) for place in range(4)])
    for connection in connections:
        connection.close()


def _compact() -> None:
    pair = Pair.opened("memory of a worker")
    Writing(pair).in_batches(iter(Corpus(BACKLOG, seed=8)))
    engine = CompactionEngine.from_settings()
    job_id = engine.request(conversation_id=pair.ours).job_id
    wait_until(lambda: engine.get_job(job_id=job_id).state is JobState.DONE, seconds=300, what="the worker is done")


def largest(pids: Sequence[int]) -> float:
    """The resident memory, in MB, of the largest of these processes and their children: the one that does the work."""
    processes = [psutil.Process(pid) for pid in pids]
    children = [child for each in processes for child in each.children(recursive=True)]
    return max(each.memory_info().rss for each in [*processes, *children]) / 1024**2
