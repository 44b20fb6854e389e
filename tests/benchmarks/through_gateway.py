"""Streams through the gateway, beside a bare proxy: the time to the first byte, many at once, memory."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psutil

from conversations.models import Workspace
from lcmsite.access import keys
from lcmsite.server.serving import bind_socket
from lcmsite.types import KeyScope
from tests.benchmarks.http import is_open, served
from tests.benchmarks.measure import Duel
from tests.benchmarks.report import Line, at_most
from tests.flows.processes import start, stop, wait_until
from tests.lcmsite.gateway.upstream import Upstream, streaming
from tests.lcmsite.operating import free_port

REQUESTS, STREAMS, TURNS = 150, 50, 20
ROUNDS = 3
# A session of Claude Code: 150 kB, 24 tools, 100 messages, and two more with each request.
LONG_TURNS, LONG_WORDS, TOOLS = 100, 180, 24
WARM_UP = 10
EVENTS = 20
EVENT = b'data: {"id": "x", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "word "}}]}\n\n'


def through_gateway() -> list[Line]:
    """One stream at a time by turns, then fifty at once."""
    with Upstream() as upstream:
        upstream.reply = streaming(*[EVENT] * EVENTS, b"data: [DONE]\n\n")
        with both(upstream.url) as (bare, ours, key, process):
            found = by_turns(bare, ours, key, a_short_session)
            long = by_turns(bare, ours, key, a_long_session)
            upstream.reply = streaming(*[EVENT] * 40, b"data: [DONE]\n\n", between=lambda _: time.sleep(0.05))
            at_once(ours, key)
            before = process.memory_info().rss
            rounds = [(at_once(bare, key), at_once(ours, key)) for _ in range(ROUNDS)]
            grown = (process.memory_info().rss - before) / 1024**2
    bare_at_once, ours_at_once = map(statistics.median, zip(*rounds, strict=True))
    many = f"gateway first byte, {STREAMS} streams at once, p50"
    return [
        *lines_of("gateway", found),
        *lines_of("gateway, requests as of Claude Code", long),
        Line("21", many, floor=1000 * bare_at_once, ours=1000 * ours_at_once, unit="ms"),
        # On one processor they are served in turn: before the first byte of the median one, those of half of them.
        Line(
            "21",
            f"gateway, {STREAMS} streams at once: own cost of each before the first byte",
            ours=1000 * (ours_at_once - bare_at_once) / (STREAMS / 2),
            unit="ms",
            goal=at_most(10, " ms"),
        ),
        Line(
            "21", f"gateway grows over {ROUNDS * STREAMS} more streams", ours=grown, unit="MB", goal=at_most(20, " MB")
        ),
    ]


@contextmanager
def both(upstream: str) -> Iterator[tuple[int, int, str, psutil.Process]]:
    """The ports of a bare proxy and of the gateway, a key, and the gateway's process."""
    workspace_id = Workspace.objects.get_or_create(name="bench")[0].pk
    key = keys.issue(workspace_id=workspace_id, name="gateway", scopes=[KeyScope.WRITE]).key
    bare, ours = free_port(), free_port()
    with served(bare, "tests.benchmarks.bare_proxy", str(bare), upstream), bind_socket("127.0.0.1", ours) as shared:
        descriptor = shared.fileno()
        command = ("lcmsite.ops.processes", str(os.getpid()), "gateway", str(descriptor))
        running = start("-m", *command, descriptors=[descriptor], gateway_upstreams=f"bench={upstream}")
        try:
            wait_until(lambda: is_open(ours), seconds=60, what="the gateway takes connections")
            yield bare, ours, key, psutil.Process(running.pid)
        finally:
            stop([running])


def by_turns(bare: int, ours: int, key: str, request: Callable[[int], tuple[str, str]]) -> Duel:
    """One stream at a time, through the bare proxy and through the gateway by turns."""
    found = Duel()
    for number in range(REQUESTS + WARM_UP):
        session, body = request(number)
        for port, laps in ((bare, found.floor), (ours, found.ours)):
            seconds = first_byte(port, key, session, body)
            if number >= WARM_UP:
                laps.seconds.append(seconds)
                laps.done.append(1)
    return found


def lines_of(what: str, found: Duel) -> list[Line]:
    floor, own = 1000 * found.floor.cost, 1000 * found.ours.cost
    added = 1000 * statistics.median(
        mine - theirs for mine, theirs in zip(found.ours.costs, found.floor.costs, strict=True)
    )
    return [
        Line("21", f"{what}: first byte, p50; floor: a bare proxy", floor=floor, ours=own, unit="ms"),
        Line("21", f"{what}: own cost before the first byte", ours=added, unit="ms", goal=at_most(10, " ms")),
    ]


def a_short_session(number: int) -> tuple[str, str]:
    """The name and the request of a session of its own."""
    rows = [{"role": ("user", "assistant")[n % 2], "content": f"{number} {n} " + "word " * 200} for n in range(TURNS)]
    body = {"model": "m", "stream": True, "messages": [*rows, {"role": "user", "content": "And?"}]}
    return f"bench {number}", json.dumps(body)


def a_long_session(number: int) -> tuple[str, str]:
    """The same session each time, two messages longer."""
    texts = [f"{n} " + "word " * LONG_WORDS for n in range(LONG_TURNS)] + ["And?", "word " * EVENTS] * number
    rows = [{"role": ("user", "assistant")[n % 2], "content": text} for n, text in enumerate(texts)]
    parameters = {"type": "object", "properties": {f"option_{n}": {"type": "string"} for n in range(10)}}
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "description": "word " * 300, "parameters": parameters}}
        for n in range(TOOLS)
    ]
    body = {"model": "m", "stream": True, "tools": tools, "messages": [*rows, {"role": "user", "content": "And?"}]}
    return "bench, long", json.dumps(body)


def first_byte(port: int, key: str, session: str, body: str) -> float:
    """Seconds to the first byte of one answer, which is read to its end."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    headers = {"x-lcm-api-key": key, "x-lcm-session-id": session, "content-type": "application/json"}
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
        threading.Thread(
            target=lambda number=number: found.append(first_byte(port, key, *a_short_session(10_000 + number)))
        )
        for number in range(STREAMS)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return statistics.median(found)
