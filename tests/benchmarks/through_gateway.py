"""Streams through the gateway, beside a bare proxy: the time to the first byte, many at once, memory."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

from conversations.models import Workspace
from lcmsite.access import keys
from lcmsite.server.serving import bound_socket
from lcmsite.types import KeyScope
from tests.benchmarks.http import is_open, served
from tests.benchmarks.measure import Duel
from tests.benchmarks.report import Line, at_most
from tests.flows.processes import start, stop, wait_until
from tests.lcmsite.gateway.upstream import Upstream, streaming
from tests.lcmsite.operating import free_port

REQUESTS, STREAMS, TURNS = 150, 50, 20
WARM_UP = 10
EVENT = b'data: {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "word "}}]}\n\n'


def through_gateway() -> list[Line]:
    """One stream at a time by turns, then fifty at once."""
    with Upstream() as upstream:
        upstream.reply = streaming(*[EVENT] * 20, b"data: [DONE]\n\n")
        with both(upstream.url) as (bare, ours, key, process):
            found = Duel()
            for number in range(REQUESTS + WARM_UP):
                for port, laps in ((bare, found.floor), (ours, found.ours)):
                    seconds = first_byte(port, key, number)
                    if number >= WARM_UP:
                        laps.seconds.append(seconds)
                        laps.done.append(1)
            upstream.reply = streaming(*[EVENT] * 40, b"data: [DONE]\n\n", between=lambda _: time.sleep(0.05))
            at_once(ours, key)
            before = process.memory_info().rss
            bare_at_once, ours_at_once = at_once(bare, key), at_once(ours, key)
            for _ in range(3):
                at_once(ours, key)
            grown = (process.memory_info().rss - before) / 1024**2
    floor, own = 1000 * found.floor.median(), 1000 * found.ours.median()
    added = 1000 * statistics.median(
        mine - theirs for mine, theirs in zip(found.ours.costs, found.floor.costs, strict=True)
    )
    many = f"gateway first byte, {STREAMS} streams at once, p50"
    return [
        Line("21", "gateway first byte, p50; floor: a bare proxy", floor=floor, ours=own, unit="ms"),
        Line("21", "gateway's own cost before the first byte", ours=added, unit="ms", goal=at_most(10, " ms")),
        Line("21", many, floor=1000 * bare_at_once, ours=1000 * ours_at_once, unit="ms"),
        Line("21", f"gateway grows over {3 * STREAMS} more streams", ours=grown, unit="MB", goal=at_most(20, " MB")),
    ]


@contextmanager
def both(upstream: str) -> Iterator[tuple[int, int, str, psutil.Process]]:
    """The ports of a bare proxy and of the gateway, a key, and the gateway's process."""
    workspace_id = Workspace.objects.get_or_create(name="bench")[0].pk
    key = keys.issue(workspace_id=workspace_id, name="gateway", scopes=[KeyScope.WRITE]).key
    bare, ours = free_port(), free_port()
    with (
        served(bare, "tests.benchmarks.bare_proxy", str(bare), upstream),
        bound_socket("127.0.0.1", ours) as shared,
    ):
        descriptor = shared.fileno()
        command = ("lcmsite.ops.processes", str(os.getpid()), "gateway", str(descriptor))
        running = start("-m", *command, descriptors=[descriptor], gateway_upstreams=f"bench={upstream}")
        try:
            wait_until(lambda: is_open(ours), seconds=60, what="the gateway takes connections")
            yield bare, ours, key, psutil.Process(running.pid)
        finally:
            stop([running])


def first_byte(port: int, key: str, session: int) -> float:
    """Seconds to the first byte of one answer, which is read to its end."""
    rows = [{"role": ("user", "assistant")[n % 2], "content": f"{session} {n} " + "word " * 200} for n in range(TURNS)]
    body = json.dumps({"model": "m", "stream": True, "messages": [*rows, {"role": "user", "content": "And?"}]})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"x-lcm-api-key": key, "x-lcm-session-id": f"bench {session}", "content-type": "application/json"}
    started = time.perf_counter()
    connection.request("POST", "/v1/chat/completions", body, headers)
    answer = connection.getresponse()
    answer.read(1)
    seconds = time.perf_counter() - started
    answer.read()
    connection.close()
    return seconds


def at_once(port: int, key: str) -> float:
    """The median time to the first byte of many streams at once."""
    found: list[float] = []
    threads = [
        threading.Thread(target=lambda number=number: found.append(first_byte(port, key, 10_000 + number)))
        for number in range(STREAMS)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return statistics.median(found)
