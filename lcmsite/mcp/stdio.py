"""MCP over standard input and output, one message per line: `lcm mcp`.

The SDK's own reader drops a line that it cannot parse, and the sender of that line would wait for a response for ever.
So lines are read and written here; the SDK handles their messages.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, jsonrpc_message_adapter
from pydantic import ValidationError

from conversations.errors import Invalid
from lcmsite.access.keys import Caller
from lcmsite.catalogue import json_text
from lcmsite.catalogue.operation import Operation
from lcmsite.mcp.calls import CallRunner
from lcmsite.mcp.mcp_server import build_server


def serve(caller_of: Callable[[], Caller], offered: Mapping[str, Operation]) -> None:
    """Answer messages until the input ends; `caller_of` is called for each call."""
    with _protocol_streams() as (lines_in, lines_out):
        anyio.run(_serve, caller_of, offered, lines_in, lines_out)


async def _serve(
    caller_of: Callable[[], Caller], offered: Mapping[str, Operation], lines_in: BinaryIO, lines_out: BinaryIO
) -> None:
    server = build_server(caller_of=lambda context: caller_of(), runner=CallRunner(), tools_of=lambda context: offered)
    messages, to_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    from_server, answers = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as group:
        group.start_soon(_read, lines_in, messages, from_server.clone())
        group.start_soon(_write, answers, lines_out)
        await server.run(to_server, from_server, server.create_initialization_options())


async def _read(
    lines: BinaryIO,
    messages: MemoryObjectSendStream[SessionMessage | Exception],
    refusals: MemoryObjectSendStream[SessionMessage],
) -> None:
    async with messages, refusals:
        async for line in anyio.wrap_file(lines):
            if not line.strip():
                continue
            try:
                value = json_text.parse(line)
                message = jsonrpc_message_adapter.validate_python(value, by_name=False)
                if isinstance(message, JSONRPCNotification) and "id" in value:
                    # Taken for a notification because of its id, it would get no response.
                    raise Invalid("The id of a request is a text or a whole number.")
            except (Invalid, ValidationError) as wrong:
                why = wrong.detail if isinstance(wrong, Invalid) else "This is no message of JSON-RPC."
                refusal = JSONRPCError(jsonrpc="2.0", id=_id_in(line), error=ErrorData(code=PARSE_ERROR, message=why))
                await refusals.send(SessionMessage(refusal))
            else:
                await messages.send(SessionMessage(message))


async def _write(answers: MemoryObjectReceiveStream[SessionMessage], lines: BinaryIO) -> None:
    file = anyio.wrap_file(lines)
    # If the client no longer reads, it has also closed the input, or will close it soon.
    with contextlib.suppress(BrokenPipeError):
        async for each in answers:
            message = each.message.model_dump(mode="json", by_alias=True, exclude_unset=True)
            await file.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
            await file.flush()
    async for _ in answers:
        pass


def _id_in(line: bytes) -> Any:
    """Return the request id in a line that could not be parsed, or None."""
    try:
        raw_id = json.loads(line).get("id")
    except (ValueError, AttributeError, RecursionError):
        return None
    return raw_id if type(raw_id) is int or (isinstance(raw_id, str) and raw_id.isprintable()) else None


@contextlib.contextmanager
def _protocol_streams() -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Reserve standard output for the protocol; prints go to standard error."""
    sys.stdout.flush()
    stdout_copy = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(stdout_copy, "wb", closefd=False) as lines_out:
            yield sys.stdin.buffer, lines_out
    finally:
        os.dup2(stdout_copy, 1)
        os.close(stdout_copy)
