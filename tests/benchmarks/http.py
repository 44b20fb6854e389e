"""Goal 3: appends over HTTP, on our site as `lcm up` serves it, beside a bare DRF view that writes the same rows."""

from __future__ import annotations

import os
import socket
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.conf import settings

from conversations.models import Workspace
from conversations.types import NewMessage
from lcmsite.access import keys
from lcmsite.server.serving import bind_socket
from lcmsite.types import KeyScope
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.ingest import Pair, a_store
from tests.benchmarks.load import Connection, request, send_all
from tests.benchmarks.measure import Duel, Laps, blocks
from tests.benchmarks.report import F, Line, at_least, at_most, rates
from tests.flows.processes import start, stop, wait_until
from tests.lcmsite.operating import free_port

CONNECTIONS = 8
SECONDS_TO_START = 5
ROUNDS = 7
SINGLES_IN_A_ROUND = 400
BATCHES_IN_A_ROUND = 24
# What other machines take of this one changes from second to second.
SINGLES, SINGLES_IN_A_TURN = 3000, 20


@dataclass(frozen=True)
class Site:
    """A server on this machine, and how one appends there."""

    port: int
    path: str
    key: str
    pids: Sequence[int]

    def appends(self, conversation_id: int, batches: Sequence[list[NewMessage]]) -> list[bytes]:
        path = self.path.format(conversation_id)
        return [request(path, {"messages": [as_json(each) for each in batch]}, key=self.key) for batch in batches]


def as_json(message: NewMessage) -> dict[str, Any]:
    parts = [{name: value for name, value in part.__dict__.items() if value is not None} for part in message.parts]
    return {"role": message.role, "parts": parts}


@contextmanager
def our_site(*scopes: KeyScope) -> Iterator[Site]:
    """Our site as `lcm up` serves it, and a key with these scopes."""
    workspace_id = Workspace.objects.get_or_create(name="bench")[0].pk
    key = keys.issue(workspace_id=workspace_id, name="bench", scopes=scopes).key
    port = free_port()
    with bind_socket("127.0.0.1", port) as shared, ExitStack() as running:
        descriptor = shared.fileno()
        command = ("lcmsite.ops.processes", str(os.getpid()), "web", str(descriptor))
        pids = [
            running.enter_context(served(port, *command, descriptors=[descriptor]))
            for _ in range(settings.DEPLOYMENT.web_workers)
        ]
        # The first serves already; a connection stays with the process that accepted it.
        time.sleep(SECONDS_TO_START)
        yield Site(port, "/api/v1/conversations/{}/messages/", key, pids)


@contextmanager
def sites() -> Iterator[tuple[Site, Site]]:
    """The bare view's server and ours, both up."""
    bare = free_port()
    with served(bare, "tests.benchmarks.bare", str(bare)) as pid, our_site(KeyScope.WRITE) as ours:
        yield Site(bare, "/append/{}/", ours.key, [pid]), ours


@contextmanager
def served(port: int, *module: str, descriptors: Sequence[int] = ()) -> Iterator[int]:
    """The id of a process that serves on this port, once it does."""
    # Its log as everybody has it, a line a request, though nobody reads it here.
    server = start("-m", *module, descriptors=descriptors, log_level="INFO", rate_limit="0")
    try:
        wait_until(lambda: is_open(port), seconds=60, what="the server takes connections")
        yield server.pid
    finally:
        stop([server])


def is_open(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def over_http() -> list[Line]:
    """Appends of one and of a hundred over eight connections, and what HTTP adds to one append over one."""
    with sites() as (bare, ours):
        pairs = [Pair.opened(f"client {number}") for number in range(CONNECTIONS)]
        corpus = iter(Corpus(10_000_000, seed=4))
        single = contest(bare, ours, pairs, corpus, size=1, count=SINGLES_IN_A_ROUND)
        batch = contest(bare, ours, pairs, corpus, size=100, count=BATCHES_IN_A_ROUND)
        return [
            rates("3", f"HTTP append one, {CONNECTIONS} connections", single, at_least(0.6, F)),
            rates("3", f"HTTP append 100, {CONNECTIONS} connections", batch, at_least(0.6, F)),
            *own_cost(ours, pairs[0], corpus),
        ]


def contest(
    bare: Site, ours: Site, pairs: Sequence[Pair], corpus: Iterator[NewMessage], *, size: int, count: int
) -> Duel:
    """Both servers by turns, with the same messages; each connection writes to a conversation of its own."""
    found = Duel()
    for number in range(ROUNDS + 1):
        batches = list(blocks(islice(corpus, count * size), size))
        for site, laps in ((bare, found.floor), (ours, found.ours)):
            connections = [Connection(site.port) for _ in pairs]
            requests = [
                site.appends(pair.ours if site is ours else pair.floor, batches[place :: len(pairs)])
                for place, pair in enumerate(pairs)
            ]
            # The first round only warms up.
            with (laps if number else Laps()).lap(count * size):
                send_all(connections, [iter(each) for each in requests])
            for connection in connections:
                connection.close()
    return found


def own_cost(ours: Site, pair: Pair, corpus: Iterator[NewMessage]) -> list[Line]:
    """What one append takes over one connection, beside the same call in process: compared turn by turn."""
    store = a_store()
    connection = Connection(ours.port)
    over_http, in_process, added = [], [], []
    for block in blocks(islice(corpus, SINGLES), SINGLES_IN_A_TURN):
        answers = send_all([connection], [iter(ours.appends(pair.ours, [[each] for each in block]))])
        calls = Laps()
        for message in block:
            with calls.lap():
                store.append_messages(conversation_id=pair.ours, messages=[message])
        added.append(statistics.median(answers) - calls.cost)
        over_http += answers
        in_process += calls.costs
    connection.close()
    call, answer, cost = (1000 * statistics.median(each) for each in (in_process, over_http, added))
    return [
        Line("3", "HTTP append one, 1 connection, p50; floor: the call", floor=call, ours=answer, unit="ms"),
        Line("3", "HTTP's own cost at 1 connection", ours=cost, unit="ms", goal=at_most(1.5, " ms")),
    ]
