"""A scripted vendor of models for real agent programs: a real HTTP server on loopback.

    with Vendor(Answer(calls=(ToolCall("Bash", {"command": "ls"}),)), Answer("Done.")) as vendor:
        run(["claude", "-p", "..."], env={"ANTHROPIC_BASE_URL": vendor.url})   # others: vendor.url + "/v1"
    vendor.turns[0].json["messages"]

It speaks Anthropic Messages (and count_tokens), OpenAI Chat Completions and OpenAI Responses, streamed and not.
Requests with tools are turns: each gets the next answer of the script, and the last answer goes on. An entry of the
script may be a function of the request. Requests without tools (titles, probes) get `A_TITLE`.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import zstandard

from lcmsite.gateway.surfaces import Task, surface_of
from tests.clients.answers import RENDERINGS, Answer, Refusal, Rendering, ToolCall
from tests.loopback import Loopback, LoopbackHandler

__all__ = ["Answer", "Refusal", "Request", "ToolCall", "Vendor"]


@dataclass(frozen=True)
class Request:
    """One request, with its body as it came over the wire."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    raw: bytes = field(repr=False)

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)

    @cached_property
    def body(self) -> bytes:
        """The body without its content encoding."""
        match (self.header("content-encoding") or "").lower():
            case "gzip":
                return gzip.decompress(self.raw)
            case "zstd":
                return zstandard.ZstdDecompressor().decompressobj().decompress(self.raw)
        return self.raw

    @cached_property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def route(self) -> str:
        """The path without its query."""
        return self.path.split("?")[0].rstrip("/")

    @property
    def is_turn(self) -> bool:
        """Whether a model that may call tools is asked."""
        return _rendering(self) is not None and bool(self.json.get("tools"))


Entry = Answer | Refusal | Callable[[Request], Answer | Refusal]
A_TITLE = Answer("A title")
MODEL = "fake"


class Vendor(Loopback):
    """Answers by a script; `url` is for Anthropic's clients, OpenAI's want `/v1` behind it."""

    def __init__(self, *script: Entry) -> None:
        super().__init__(_Handler)
        self.requests: list[Request] = []
        self._script = list(script) or [Answer("Yes.")]
        self._lock = threading.Lock()

    @property
    def turns(self) -> list[Request]:
        return [request for request in self.requests if request.is_turn]

    def answers(self, *script: Entry) -> None:
        """Go on with this script."""
        with self._lock:
            self._script = list(script)

    def take(self, request: Request) -> Answer | Refusal:
        """Record the request and choose what answers it."""
        with self._lock:
            self.requests.append(request)
            if not request.is_turn:
                return A_TITLE
            entry = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return entry if isinstance(entry, Answer | Refusal) else entry(request)


def _rendering(request: Request) -> type[Rendering] | None:
    surface, task = surface_of(request.method, request.route) or (None, None)
    return RENDERINGS[surface] if surface and task is Task.GENERATE else None


class _Handler(LoopbackHandler):
    def take(self) -> None:
        request = Request(self.command, self.path, tuple(self.headers.items()), self.read_body())
        kind = _rendering(request)
        if kind is not None:
            self._answer(request, kind)
            return
        self.owner.requests.append(request)
        if self.command == "HEAD":
            self._send(200, b"")
        elif self.command == "GET" and request.route.endswith("/models"):
            self._send_json(200, _models())
        elif request.route.endswith("/count_tokens"):
            self._send_json(200, {"input_tokens": max(1, len(request.body) // 4)})
        else:
            self._send_json(404, {"error": {"type": "not_found_error", "message": "There is nothing here."}})

    def _answer(self, request: Request, kind: type[Rendering]) -> None:
        answer = self.owner.take(request)
        if isinstance(answer, Refusal):
            self._send_json(answer.status, answer.body)
            return
        rendering = kind(answer, str(request.json.get("model", MODEL)), len(request.body))
        if request.json.get("stream"):
            self._stream(rendering)
        else:
            self._send_json(200, rendering.whole())

    def _send_json(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body, ensure_ascii=False).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.answer(status, body, request_id="req_scripted")

    def _stream(self, rendering: Rendering) -> None:
        kind = {"content_type": "text/event-stream; charset=utf-8", "transfer_encoding": "chunked"}
        self.begin(200, **kind, request_id="req_scripted")
        for number, event in enumerate(rendering.stream()):
            if rendering.answer.cut_after is not None and number >= rendering.answer.cut_after:
                self.reset()
                return
            if rendering.answer.pause:
                time.sleep(rendering.answer.pause)
            self.send_chunk(event)
        self.end_chunks()


def _models() -> dict[str, Any]:
    model = {"id": MODEL, "object": "model", "type": "model", "display_name": MODEL, "created": 0}
    return {"object": "list", "data": [{**model, "owned_by": "script"}], "first_id": MODEL, "last_id": MODEL}
