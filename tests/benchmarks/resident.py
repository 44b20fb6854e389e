"""Goal 15: what a web process and a worker keep in memory, idle and after work."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psutil

from compaction.engine import CompactionEngine
from compaction.types import JobState
from conversations.models import Workspace
from lcmsite.access import keys
from lcmsite.server.serving import bound_socket
from lcmsite.types import KeyScope
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.http import Site, free_port, wait_for
from tests.benchmarks.ingest import Pair, Writing
from tests.benchmarks.load import Connection, send_all
from tests.benchmarks.measure import blocks
from tests.benchmarks.report import Line, at_most

APPENDED_OVER_HTTP = 10_000
BACKLOG = 20_000
SECONDS_AT_MOST = 300


def resident() -> list[Line]:
    """A web process that takes in messages, and a worker that compacts a backlog, weighed before and after."""
    workspace_id = Workspace.objects.get_or_create(name="bench")[0].pk
    key = keys.issue(workspace_id=workspace_id, name="memory", scopes=[KeyScope.WRITE]).key
    port = free_port()
    with (
        bound_socket("127.0.0.1", port) as bound,
        process("web", str(bound.fileno()), descriptors=[bound.fileno()]) as web,
        process("worker", "compaction") as worker,
    ):
        wait_for(port)
        time.sleep(2)
        idle = largest(web), largest(worker)
        _append(Site(port, "/api/v1/conversations/{}/messages/", key))
        _compact()
        after = largest(web), largest(worker)
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
    job = engine.request(conversation_id=pair.ours)
    until = time.monotonic() + SECONDS_AT_MOST
    while time.monotonic() < until and engine.get_job(job_id=job.job_id).state is not JobState.DONE:
        time.sleep(0.2)


@contextmanager
def process(*kind: str, descriptors: Sequence[int] = ()) -> Iterator[psutil.Process]:
    """A process of LCM's, as `lcm up` starts it."""
    running = subprocess.Popen(
        [sys.executable, "-m", "lcmsite.ops.processes", str(os.getpid()), *kind],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=descriptors,
    )
    try:
        yield psutil.Process(running.pid)
    finally:
        running.terminate()
        running.wait(timeout=60)


def largest(process: psutil.Process) -> float:
    """The resident memory, in MB, of the largest of the process and its children: the one that does the work."""
    return max(each.memory_info().rss for each in [process, *process.children(recursive=True)]) / 1024**2
