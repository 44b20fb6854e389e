"""Agents for tests: the official client over either transport, and what is said past it, as bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from django.conf import settings as site
from django.test import override_settings
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult

from lcmsite.catalogue.operation import Operation
from lcmsite.mcp.http_app import application
from lcmsite.mcp.tool_list import TOOLS
from lcmsite.types import KeyScope
from tests.flows.processes import PROJECT, environment, start_server, stop_server
from tests.lcmsite.operating import agents_are_served, eventually, free_port, served_here

LCM_MCP = [sys.executable, "-c", "import sys; from lcmsite.cli import main; sys.exit(main())", "mcp"]
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}


MOST_BYTES = 8 * 1024**2
WRITES = [name for name, operation in TOOLS.items() if operation.scope is not KeyScope.READ]
SETTINGS = {"LCM_MAX_REQUEST_BYTES": str(MOST_BYTES), "LCM_POOL_SIZE": "2", "LCM_LOG_FORMAT": "json"}


Connect = Callable[[str, str], AbstractAsyncContextManager[Client]]


@dataclass(frozen=True)
class Agents:
    """Agents on one transport, each with a key and in one era of the protocol, who stay connected."""

    hire: Callable[[str, str], Client]
    portal: BlockingPortal

    def do(self, key: str, task: Callable[[Client], Any], *, mode: str = "auto") -> Any:
        """What the task gives, done by an agent with this key."""
        return self.portal.call(task, self.hire(key, mode))

    def call(self, key: str, tool: str, given: dict[str, Any]) -> Any:
        return self.do(key, lambda client: client.call_tool(tool, given))


@contextmanager
def hired(connect: Connect) -> Iterator[Agents]:
    """Within, agents stay; a server that agents start themselves is started once for each key."""
    with start_blocking_portal() as portal, ExitStack() as leaving:

        @cache
        def hire(key: str, mode: str) -> Client:
            return leaving.enter_context(portal.wrap_async_context_manager(connect(key, mode)))

        yield Agents(hire, portal)


def over_http(url: str) -> Connect:
    @asynccontextmanager
    async def connect(key: str, mode: str) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {key}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=30, trust_env=False) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode) as client,
        ):
            yield client

    return connect


def over_stdio(data_dir: Path) -> Connect:
    @asynccontextmanager
    async def connect(key: str, mode: str) -> AsyncIterator[Client]:
        command, *arguments = LCM_MCP
        given = own(SETTINGS | {"LCM_DATA_DIR": str(data_dir)}, key)
        server = StdioServerParameters(command=command, args=arguments, env=given, cwd=PROJECT)
        # Its log is for people, and a test's output is no file.
        with Path(os.devnull).open("w") as nowhere:
            async with Client(stdio_client(server, errlog=nowhere), mode=mode) as client:
                yield client

    return connect


@contextmanager
def serving(data_dir: Path) -> Iterator[str]:
    """A server on the test database, as `lcm up` starts it; its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/mcp"
    given = own(SETTINGS | {"LCM_DATA_DIR": str(data_dir)}, "")
    running = start_server("mcp", port, given, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: agents_are_served(port), seconds=60)
        yield url
    finally:
        stop_server(running)


@contextmanager
def serving_here() -> Iterator[str]:
    """The same in this process, where it starts at once."""
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=MOST_BYTES), served_here(application(), lifespan="on") as port:
        yield f"http://127.0.0.1:{port}/mcp"


def own(settings: dict[str, str], key: str) -> dict[str, str]:
    """The environment of a server on this test's database."""
    # With the key that signs cursors, it is the same site.
    ours = {"LCM_API_KEY": key, "LCM_SECRET_KEY": site.SECRET_KEY, "PYTHONPATH": str(PROJECT)}
    return environment() | settings | ours


def post(url: str, key: str | None, body: bytes, **headers: str) -> httpx2.Response:
    """Say these bytes over HTTP."""
    own_headers = ACCEPT | ({"Authorization": f"Bearer {key}"} if key else {}) | headers
    # Over plain HTTP: to read the certificates of the system would take longer than most answers.
    with httpx2.Client(timeout=30, trust_env=False, verify=False) as http:
        return http.post(url, content=body, headers=own_headers)


def a_call(tool: str, given: dict[str, Any], id: int = 1) -> bytes:
    """A call as a client of 2025 says it."""
    params = {"name": tool, "arguments": given}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).encode()


# What has to be said beyond the required params, since a service demands one of several.
MORE = {"lcm_map_submit": ("kind", "retain", "items", "idempotency_key")}


def question(operation: Operation, world: dict[str, Any]) -> dict[str, Any]:
    """The shortest question to an operation, about the conversation if it can be about one."""
    fields = operation.params.model_fields
    if operation.tool == "lcm_expand_session":
        world = world | {"summary_id": world["session_summary_id"]}
    more = {"conversation_id", *MORE.get(operation.tool, ())}
    return {name: world[name] for name, field in fields.items() if field.is_required() or name in more}


def problem_in(result: CallToolResult) -> dict[str, Any]:
    """What a refusal says."""
    assert result.is_error
    return json.loads(result.content[0].text)


def answer_in(response: httpx2.Response) -> dict[str, Any]:
    """The one answer in a stream of events."""
    data = [line.removeprefix("data: ") for line in response.text.splitlines() if line.startswith("data: ")]
    return json.loads(data[-1])


def say(lines: list[bytes], settings: dict[str, str], key: str) -> subprocess.CompletedProcess[bytes]:
    """Say these lines over stdio, wait for as many answers, and end the input."""
    started = subprocess.Popen(
        LCM_MCP,
        cwd=PROJECT,
        env=own(settings, key),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert started.stdin and started.stdout
    said = b""
    for line in lines:
        started.stdin.write(line + b"\n")
        started.stdin.flush()
        if b'"id"' in line or b"broken" in line:
            said += started.stdout.readline()
    rest, errors = started.communicate(timeout=30)
    return subprocess.CompletedProcess(LCM_MCP, started.returncode, said + rest, errors)


HELLO = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }
).encode()
READY = b'{"jsonrpc": "2.0", "method": "notifications/initialized"}'
