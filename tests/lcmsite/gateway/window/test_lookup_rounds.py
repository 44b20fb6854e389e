"""One answer of several: what passes while the model looks something up."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
import time
import tracemalloc
from collections.abc import Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest
from mcp_types import CallToolResult, TextContent

from conversations.content.tokens import TokenEstimator
from lcmsite.gateway import surfaces_answer
from lcmsite.gateway.forwarding import Watcher
from lcmsite.gateway.lookups import lookup_rounds
from lcmsite.gateway.lookups.lookup_rounds import LookupRounds
from lcmsite.gateway.lookups.offering import Lookups
from lcmsite.gateway.surfaces import LIST_KEY, Surface
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.mcp.calls import CallRunner
from tests.clients.answers import Answer, ToolCall
from tests.lcmsite.gateway.sessions import rendered

FOUND = "retry_ceiling = 4711"
CALL = {"type": "tool_use", "id": "1", "name": "lcm_grep", "input": {"query": "x"}}
STREAM = {"content-type": "text/event-stream"}
JSON = {"content-type": "application/json"}


class Finding(CallRunner):
    """Gives the same answer to each call."""

    async def run_operation(self, *_: Any, **__: Any) -> CallToolResult:
        return CallToolResult(content=[TextContent(type="text", text=FOUND)])


@dataclass
class Vendor:
    """Answers requests one after another, each answer in pieces."""

    answers: list[tuple[int, Mapping[str, str], bytes]]
    piece: int = 500
    requests: list[bytes] = field(default_factory=list)

    @asynccontextmanager
    async def ask(self, body: bytes) -> Any:
        self.requests.append(body)
        status, headers, answer = self.answers[len(self.requests) - 1]

        async def pieces() -> Any:
            for start in range(0, len(answer), self.piece):
                yield answer[start : start + self.piece]

        yield httpx2.Response(status, headers=headers, content=pieces())


@dataclass
class Client:
    """What a client gets, and what the gateway notes of it."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)
    is_done: bool = False
    watcher: Watcher = field(default_factory=Watcher)

    async def send(self, event: Any) -> None:
        if event["type"] == "http.response.start":
            self.status = event["status"]
            self.headers = {name.decode().lower(): value.decode() for name, value in event["headers"]}
        self.body.extend(event.get("body", b""))
        self.is_done = event.get("more_body") is False

    def ask(self, vendor: Vendor, surface: Surface, lookups: Lookups | None = None) -> LookupRounds:
        async def no_headers() -> list[Any]:
            return []

        lookups = lookups or Lookups(b"", 4_000, RequestCounter(TokenEstimator("estimate")), Finding())
        rounds = LookupRounds(surface, lookups, vendor.ask, self.send, no_headers, self.watcher)
        body = {LIST_KEY[surface]: [{"role": "user", "content": "Hello"}]}
        asyncio.run(rounds.send_answer(json.dumps(body).encode()))
        return rounds


@dataclass
class Counting(Client):
    """A client that counts what it gets, and keeps nothing."""

    taken: int = 0

    async def send(self, event: Any) -> None:
        self.taken += len(event.get("body", b""))
        self.is_done = event.get("more_body") is False


def passed(body: bytes, *, piece: int, surface: Surface = Surface.RESPONSES) -> bytes:
    """What a client gets of an answer that comes in pieces."""
    client = Client()
    client.ask(Vendor([(200, STREAM, body)], piece), surface)
    return bytes(client.body)


def test_a_large_event_holds_up_no_other_stream() -> None:
    kind = "response.image_generation_call.partial_image"
    image = {"type": kind, "output_index": 0, "partial_image_b64": "A" * 2**22}
    end = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}}
    body = _sent(image) + _sent(end)
    began = time.thread_time()

    given = passed(body, piece=32 * 1024)

    assert image["partial_image_b64"].encode() in given
    assert time.thread_time() - began < 2.0


def events_with_a_lookup(stop_reason: str, argument: str = '{"query": "x"}') -> list[dict[str, Any]]:
    call = {"type": "tool_use", "id": "1", "name": "lcm_grep"}
    delta = {"type": "input_json_delta", "partial_json": argument}
    return [
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "I look it up."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_delta", "index": 1, "delta": delta},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": stop_reason}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]


def test_a_lookup_that_the_limit_of_the_answer_has_cut_off_is_not_answered() -> None:
    events = events_with_a_lookup("max_tokens", '{"que')

    given = passed(b"".join(map(_sent, events)), piece=500, surface=Surface.MESSAGES)

    assert b"I look it up." in given and b"lcm_grep" not in given
    assert b'"stop_reason": "max_tokens"' in given and b"message_stop" in given


def test_an_answer_of_several_rounds_has_one_id() -> None:
    lookup = Answer("I look it up.", (ToolCall("lcm_grep", {"query": "x"}),))
    rounds = [b"".join(rendered(Surface.RESPONSES, each).stream()) for each in (lookup, Answer("It is 4711."))]
    client = Client()

    client.ask(Vendor([(200, STREAM, each) for each in rounds]), Surface.RESPONSES)

    events = [json.loads(line[6:]) for line in client.body.splitlines() if line.startswith(b"data: ")]
    lifecycle = [event for event in events if "response" in event]
    assert [event["type"] for event in lifecycle] == ["response.created", "response.completed"]
    assert len({event["response"]["id"] for event in lifecycle}) == 1


def test_a_lookup_in_an_answer_with_a_gap_ends_it_without_a_call() -> None:
    unread = b"event: new\ndata: not JSON\n\n"
    *events, end = map(_sent, events_with_a_lookup("tool_use"))

    given = passed(b"".join([*events, unread, end]), piece=500, surface=Surface.MESSAGES)

    assert b"lcm_grep" not in given and unread in given
    assert b'"stop_reason": "end_turn"' in given and b"tool_use" not in given


def test_calls_without_an_index_are_told_apart_by_their_order() -> None:
    names = ("lcm_grep", "edit", "lcm_grep", "read")
    calls = [{"id": name, "function": {"name": name, "arguments": "{}"}} for name in names]
    choices = [
        {"delta": {"tool_calls": calls[:2]}},
        {"delta": {"tool_calls": calls[2:]}},
        {"finish_reason": "tool_calls"},
    ]

    given = passed(b"".join(_sent({"choices": [each]}) for each in choices), piece=500, surface=Surface.CHAT)

    events = [json.loads(line[6:]) for line in given.splitlines() if line.startswith(b"data: {")]
    shown = [call for event in events for call in event["choices"][0]["delta"].get("tool_calls", [])]
    assert [(call["index"], call["id"]) for call in shown] == [(0, "edit"), (1, "read")]


def test_the_pieces_of_a_call_without_an_index_stay_together() -> None:
    pieces = [("lcm_grep", '{"query"'), (None, ': "x"}'), ("edit", '{"path"'), (None, ': "a.py"}')]
    calls = [{"function": {"name": name, "arguments": text}} for name, text in pieces]
    choices = [*({"delta": {"tool_calls": [call]}} for call in calls), {"finish_reason": "tool_calls"}]

    given = passed(b"".join(_sent({"choices": [each]}) for each in choices), piece=500, surface=Surface.CHAT)

    events = [json.loads(line[6:]) for line in given.splitlines() if line.startswith(b"data: {")]
    shown = [call for event in events for call in event["choices"][0]["delta"].get("tool_calls", [])]
    assert shown == [{**call, "index": 0} for call in calls[2:]]


def _sent(event: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\r\n\r\n"


def test_events_pass_whole_wherever_the_pieces_end() -> None:
    texts = [{"type": "response.output_text.delta", "output_index": 0, "delta": f"{n} "} for n in range(5)]
    body = b"".join(map(_sent, texts))

    assert {passed(body, piece=size) for size in (1, 2, 3, 7, 500)} == {body}


@pytest.mark.parametrize("status", [200, 429])
def test_an_answer_in_an_unknown_coding_passes_as_it_came(status: int) -> None:
    client = Client()
    headers = {"content-type": "application/json", "content-encoding": "br", "content-length": "7"}

    client.ask(Vendor([(status, headers, b"\x8b\x01 raw!")]), Surface.MESSAGES)

    assert (client.status, bytes(client.body)) == (status, b"\x8b\x01 raw!")
    assert client.headers == headers
    assert client.is_done and client.watcher.headers["content-encoding"] == "br"


@pytest.mark.parametrize("kind", [STREAM, JSON])
@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_a_corrupt_answer_counts_as_broken_off(kind: dict[str, str], coding: str) -> None:
    client = Client()

    with pytest.raises(httpx2.HTTPError):
        client.ask(Vendor([(200, {**kind, "content-encoding": coding}, b"no such coding")]), Surface.MESSAGES)

    assert not client.is_done


@pytest.mark.parametrize("kind", [STREAM, JSON])
def test_an_answer_that_decodes_to_too_much_is_passed_on_and_not_kept(
    kind: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (lookup_rounds, surfaces_answer):
        monkeypatch.setattr(each, "MOST_BYTES", 1024**2)
    size = 16 * 1024**2
    packed = gzip.compress(b"data: " + bytes(size))
    client = Counting()

    tracemalloc.start()
    client.ask(Vendor([(200, {**kind, "content-encoding": "gzip"}, packed)]), Surface.MESSAGES)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert client.taken == size + len(b"data: ")
    assert client.is_done
    assert most < 8 * 1024**2


def a_body(*blocks: dict[str, Any], stop_reason: str) -> bytes:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "usage": {"output_tokens": 9}}
    return json.dumps({**message, "content": blocks, "stop_reason": stop_reason}).encode()


def test_what_a_body_needs_is_looked_up_before_its_headers_are_sent() -> None:
    first = (200, {**JSON, "request-id": "first"}, a_body(CALL, stop_reason="tool_use"))
    second = (200, {**JSON, "request-id": "second"}, a_body({"type": "text", "text": FOUND}, stop_reason="end_turn"))
    client, vendor = Client(), Vendor([first, second])

    client.ask(vendor, Surface.MESSAGES)

    assert FOUND in vendor.requests[1].decode()
    assert (client.status, client.headers["request-id"]) == (200, "first")
    assert json.loads(client.body)["content"] == [{"type": "text", "text": FOUND}]


def test_an_error_within_the_answer_of_a_body_leaves_the_client_without_one() -> None:
    client = Client()

    with pytest.raises(httpx2.HTTPError):
        client.ask(Vendor([(200, JSON, a_body(CALL, stop_reason="tool_use")), (429, JSON, b"{}")]), Surface.MESSAGES)

    # So the gateway can still refuse, and nothing says that the request was answered.
    assert client.status is None and client.watcher.status is None


@pytest.mark.parametrize("surface", [Surface.MESSAGES, Surface.CHAT])
def test_an_error_that_a_vendor_sends_as_a_good_answer_is_passed_on_after_a_lookup(surface: Surface) -> None:
    lookup = rendered(surface, Answer("I look.", (ToolCall("lcm_grep", {"query": "x"}),))).whole()
    error = b'{"error": {"message": "overloaded"}}'
    client = Client()

    client.ask(Vendor([(200, JSON, json.dumps(lookup).encode()), (200, JSON, error)]), surface)

    assert (bytes(client.body), client.is_done) == (error, True)


def test_tokens_are_counted_beside_the_other_streams() -> None:
    class Noting(RequestCounter):
        def tokens(self, value: Any) -> int:
            counted_in.add(threading.current_thread())
            return super().tokens(value)

    counted_in: set[threading.Thread] = set()
    bodies = [a_body(CALL, stop_reason="tool_use"), a_body({"type": "text", "text": "Yes."}, stop_reason="end_turn")]
    lookups = Lookups(b"", 4_000, Noting(TokenEstimator("estimate")), Finding())
    vendor = Vendor([(200, JSON, body) for body in bodies])

    Client().ask(vendor, Surface.MESSAGES, lookups)

    assert counted_in and threading.current_thread() not in counted_in
    call_and_result = json.loads(vendor.requests[1])["messages"][1:]
    assert lookups.room == 4_000 - sum(map(lookups.counter.entry_tokens, call_and_result))
