"""One answer of several: what passes while the model looks something up."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from lcmsite.gateway.forwarding import Watched
from lcmsite.gateway.lookups.lookup_rounds import LookupRounds
from lcmsite.gateway.lookups.offering import Lookups
from lcmsite.gateway.surfaces import Surface

STREAM = {"content-type": "text/event-stream"}


def passed(body: bytes, *, piece: int, surface: Surface = Surface.RESPONSES) -> bytes:
    """What a client gets of an answer that comes in pieces."""
    sent = bytearray()

    async def pieces() -> Any:
        for start in range(0, len(body), piece):
            yield body[start : start + piece]

    @asynccontextmanager
    async def ask(changed: bytes) -> Any:
        yield httpx2.Response(200, headers=STREAM, content=pieces())

    async def send(event: Any) -> None:
        sent.extend(event.get("body", b""))

    async def no_headers() -> list[Any]:
        return []

    watched = Watched(lambda piece: None)
    rounds = LookupRounds(surface, Lookups(b"", 4_000), ask, send, no_headers, watched)
    asyncio.run(rounds.answer(b"{}"))
    return bytes(sent)


def test_a_large_event_holds_up_no_other_stream() -> None:
    image = {
        "type": "response.image_generation_call.partial_image",
        "output_index": 0,
        "partial_image_b64": "A" * 2**22,
    }
    end = {"type": "response.completed", "response": {"id": "resp_1", "status": "completed", "output": []}}
    body = _sent(image) + _sent(end)
    began = time.thread_time()

    given = passed(body, piece=32 * 1024)

    assert image["partial_image_b64"].encode() in given
    assert time.thread_time() - began < 2.0


def test_a_lookup_that_the_limit_of_the_answer_has_cut_off_is_not_answered() -> None:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "I look it up."}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "content_block_start",
            "index": 1,
            "content_block": {"type": "tool_use", "id": "1", "name": "lcm_grep"},
        },
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"que'}},
        {"type": "content_block_stop", "index": 1},
        {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
        {"type": "message_stop"},
    ]

    given = passed(b"".join(map(_sent, events)), piece=500, surface=Surface.MESSAGES)

    assert b"I look it up." in given and b"lcm_grep" not in given
    assert b'"stop_reason": "max_tokens"' in given and b"message_stop" in given


def _sent(event: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\r\n\r\n"


def test_events_pass_whole_wherever_the_pieces_end() -> None:
    texts = [{"type": "response.output_text.delta", "output_index": 0, "delta": f"{n} "} for n in range(5)]
    body = b"".join(map(_sent, texts))

    assert {passed(body, piece=size) for size in (1, 2, 3, 7, 500)} == {body}
