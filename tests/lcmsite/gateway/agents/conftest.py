"""The gateway and LCM's tools on the test database for real agents; a listener before the gateway, one behind it."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from lcmsite.gateway.surfaces import Surface
from lcmsite.models import GatewayExchange
from lcmsite.server.serving import bind_socket
from tests.clients.forty_turns import ScriptedModel
from tests.clients.tapping import Passed, Tap, altered
from tests.clients.vendor import Answer, Refusal, Request, Vendor
from tests.clients.wire_and_store import Kept, answer_rows, differences, expected, is_whole, kept_in, missing_words
from tests.committed import committed
from tests.factories import a_workspace
from tests.flows.processes import PROJECT, start_server, stop
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.gateway.upstream import Relay
from tests.lcmsite.gateway.window.checking import check_request, entries_of, tokens_of
from tests.lcmsite.operating import agents_are_served, eventually, free_port, is_gateway

WINDOW = 16_000
_NUMBERS = itertools.count(1)


@dataclass
class Lcm:
    """A running LCM, for one test: with a workspace and a key of its own."""

    data_dir: Path
    socket: socket.socket
    mcp_port: int
    settings: dict[str, str] = field(repr=False)
    # Between the agent and the gateway, and between the gateway and the vendor.
    before: Tap
    behind: Tap
    to_database: Relay
    log: Path
    gateway: Any = None
    key: str = field(default="", repr=False)
    workspace_id: int = 0
    # How many exchanges ended with the gateway that recorded them.
    killed: int = 0

    @property
    def asked(self) -> list[Passed]:
        """What the agent has asked its model."""
        return [each for each in self.before.passed if each.method == "POST"]

    @property
    def spool(self) -> Path:
        return self.data_dir / "gateway" / "spool"

    @property
    def mcp_url(self) -> str:
        return f"http://127.0.0.1:{self.mcp_port}/mcp"

    def serve(self) -> None:
        """Start the gateway, at its socket, which stays while it is away: as `lcm up` does."""
        number = self.socket.fileno()
        command = [sys.executable, "-m", "lcmsite.ops.processes", str(os.getpid()), "gateway", str(number)]
        with self.log.open("ab") as log:
            self.gateway = subprocess.Popen(command, cwd=PROJECT, env=self.settings, pass_fds=[number], stderr=log)

    def kill_gateway(self) -> None:
        self.gateway.kill()
        self.gateway.wait()
        self.killed += 1

    def settle(self) -> None:
        """Wait until all that passed is recorded."""
        passed = sum(each.method == "POST" for each in self.behind.passed) - self.killed
        recorded = GatewayExchange.objects.filter(workspace_id=self.workspace_id, milliseconds__isnull=False)
        eventually(lambda: recorded.count() >= passed and not list(self.spool.glob("*.exchange")), seconds=180)


def check_record(lcm: Lcm, surface: Surface, model: ScriptedModel) -> Kept:
    """All that went over the wire is in LCM, once each, and the vendor has seen what the agent sent."""
    assert altered(lcm.asked, lcm.behind.passed) == []
    return check_stored(lcm, surface, model, model.answered)


def check_stored(
    lcm: Lcm, surface: Surface, model: ScriptedModel, answered: Sequence[tuple[Request, Answer | Refusal]] = ()
) -> Kept:
    """All that the agent sent and got is in LCM, once each.

    Which answer is whose is known where the vendor has seen what the agent sent: `answered`.
    """
    requests = [request_of(each) for each in lcm.asked]
    answers = [answer for _, answer in model.answered if isinstance(answer, Answer) and is_whole(answer)]
    kept = kept_in(lcm.workspace_id, surface)
    # A title is asked for beside the conversation.
    turns = [(request, Refusal(0, {})) for request in requests if request.is_turn]
    wanted = expected(surface, answered or turns, broken=kept.broken)
    assert differences(wanted, kept, () if answered else [answer_rows(surface, answer) for answer in answers]) == []
    assert missing_words(requests, kept) == []
    assert {answer.text for answer in answers} - kept.words - {""} == set()
    return kept


def check_assembled(lcm: Lcm, surface: Surface) -> int:
    """The vendor has seen valid requests within the window, with one beginning until the next cut.

    Returns how many cuts there were.
    """
    before: list[Any] = []
    blocks: list[str] = []
    for each in lcm.behind.passed:
        assert tokens_of(surface, each.body) <= WINDOW
        entries = entries_of(surface, each.body)
        block = block_in(entries)
        if block is None:
            continue
        check_request(surface, json.dumps(_without_nulls(json.loads(each.body))).encode())
        if block not in blocks:
            blocks.append(block)
        # What the agent writes anew each time, such as its marks, stands at the end.
        elif block == blocks[-1] and block == block_in(before):
            same = max(1, len(before) - 4)
            assert json.dumps(entries[:same]) == json.dumps(before[:same])
        before = entries
    return len(blocks)


def _without_nulls(value: Any) -> Any:
    """Vendors take null for what is not there, which their types do not say."""
    if isinstance(value, dict):
        return {key: _without_nulls(each) for key, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def request_of(passed: Passed) -> Request:
    return Request(passed.method, passed.path, passed.headers, passed.body)


def block_in(entries: list[Any]) -> str | None:
    """The text that stands for what was left out."""
    texts = (json.dumps(each) for each in entries if each.get("role") == "user")
    return next((text for text in texts if "<lcm_injected" in text and "LCM, its memory" in text), None)


@pytest.fixture(scope="module")
def up(django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: Any) -> Iterator[Lcm]:
    with (
        committed(django_db_blocker),
        Vendor() as nobody,
        Tap(nobody.url) as behind,
        Tap(nobody.url) as before,
        bind_socket("127.0.0.1", 0) as bound,
    ):
        relay = Relay()
        data_dir = tmp_path_factory.mktemp("up")
        given = relay.settings(data_dir=data_dir, upstream=behind.url, LCM_MODEL_TOKEN_BUDGET=str(WINDOW))
        lcm = Lcm(data_dir, bound, free_port(), given, before, behind, relay, data_dir / "gateway.log")
        port = bound.getsockname()[1]
        before.aim(f"http://127.0.0.1:{port}")
        lcm.serve()
        tools = start_server("mcp", lcm.mcp_port, given, stderr=subprocess.DEVNULL)
        try:
            eventually(lambda: is_gateway(port) and agents_are_served(lcm.mcp_port), seconds=120)
            yield lcm
        finally:
            relay.mend()
            stop([lcm.gateway, tools])
            relay.close()


@pytest.fixture
def lcm(up: Lcm) -> Lcm:
    """LCM, with a workspace in which nothing is yet."""
    workspace = a_workspace(f"agents {os.getpid()} {next(_NUMBERS)}")
    up.key, up.workspace_id = an_api_key(workspace), workspace.pk
    up.killed = 0
    up.before.passed.clear()
    up.behind.passed.clear()
    return up


@pytest.fixture(autouse=True)
def files_of_lcm(settings: Any, up: Lcm, files_of_its_own: None) -> None:
    """The test reads long texts where LCM has put them."""
    settings.MEDIA_ROOT = up.data_dir / "files"
