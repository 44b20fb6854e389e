"""A scripted vendor of models for real agent programs: a real HTTP server on loopback.

    with Vendor(Answer(calls=(ToolCall("Bash", {"command": "ls"}),)), Answer("Done.")) as vendor:
        run(["claude", "-p", "..."], env={"ANTHROPIC_BASE_URL": vendor.url})   # others: vendor.url + "/v1"
    vendor.turns[0].json["messages"]

It speaks Anthropic Messages (and count_tokens), OpenAI Chat Completions and OpenAI Responses, streamed and not.
Requests with tools are turns: each gets the next answer of the script, and the last answer goes on. An entry of the
script may be a function of the request. Requests without tools (titles, probes) get `aside`.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import zstandard

from .answers import Answer, AnthropicMessage, ChatCompletion, Refusal, Rendering, ResponseObject, ToolCall

__all__ = ["Answer", "Refusal", "Request", "ToolCall", "Vendor"]

RENDERINGS: dict[str, type[Rendering]] = {
    "/messages": AnthropicMessage,
    "/chat/completions": ChatCompletion,
    "/responses": ResponseObject,
}


@dataclass(frozen=True)
class Request:
    """One request, with its body as it came over the wire."""

    method: str
    path: str
    headers: tuple[tuple[str, str], ...]
    raw: bytes = field(repr=False)
    at: float

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


class Vendor:
    """Serves on a port of its own from `with` to the end of the block."""

    def __init__(self, *script: Entry, aside: Entry = A_TITLE, model: str = "fake", port: int = 0) -> None:
        self.requests: list[Request] = []
        self.model = model
        self._aside = aside
        self._script = list(script) or [Answer("Yes.")]
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    def __enter__(self) -> Vendor:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    @property
    def url(self) -> str:
        """The base URL of Anthropic's clients; those of OpenAI's protocols want `/v1` behind it."""
        return f"http://127.0.0.1:{self.port}"

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
                entry = self._aside
            else:
                entry = self._script.pop(0) if len(self._script) > 1 else self._script[0]
        return entry if isinstance(entry, Answer | Refusal) else entry(request)


def _rendering(request: Request) -> type[Rendering] | None:
    if request.method != "POST":
        return None
    return next((kind for path, kind in RENDERINGS.items() if request.route.endswith(path)), None)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """A client that went away is part of many tests."""


def _handler(vendor: Vendor) -> type[BaseHTTPRequestHandler]:
    class Handler(_Handler):
        pass

    Handler.vendor = vendor
    return Handler


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    vendor: Vendor

    def do_HEAD(self) -> None:
        self._take()
        self._send(200, b"")

    def do_GET(self) -> None:
        request = self._take()
        if request.route.endswith("/models"):
            self._send_json(200, _models(self.vendor.model))
        else:
            self._send_json(404, {"error": {"type": "not_found_error", "message": "There is nothing here."}})

    def do_POST(self) -> None:
        request = self._take(chooses=False)
        if request.route.endswith("/count_tokens"):
            self.vendor.requests.append(request)
            self._send_json(200, {"input_tokens": max(1, len(request.body) // 4)})
            return
        kind = _rendering(request)
        if kind is None:
            self.vendor.requests.append(request)
            self._send_json(404, {"error": {"type": "not_found_error", "message": "There is nothing here."}})
            return
        answer = self.vendor.take(request)
        if isinstance(answer, Refusal):
            self._send_json(answer.status, answer.body, answer.headers)
            return
        rendering = kind(answer, str(request.json.get("model", self.vendor.model)), len(request.body))
        if request.json.get("stream"):
            self._stream(rendering)
        else:
            self._send_json(200, rendering.whole())

    def log_message(self, *_: object) -> None:
        pass

    def _take(self, *, chooses: bool = True) -> Request:
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            raw = self._chunked()
        else:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        request = Request(self.command, self.path, tuple(self.headers.items()), raw, time.time())
        if chooses:
            self.vendor.requests.append(request)
        return request

    def _chunked(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def _send_json(self, status: int, body: dict[str, Any], headers: tuple[tuple[str, str], ...] = ()) -> None:
        self._send(status, json.dumps(body, ensure_ascii=False).encode(), headers)

    def _send(self, status: int, body: bytes, headers: tuple[tuple[str, str], ...] = ()) -> None:
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.send_header("request-id", "req_scripted")
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _stream(self, rendering: Rendering) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.send_header("request-id", "req_scripted")
        self.end_headers()
        for number, (name, data) in enumerate(rendering.events()):
            if rendering.answer.cut_after is not None and number >= rendering.answer.cut_after:
                self._reset()
                return
            if rendering.answer.pause:
                time.sleep(rendering.answer.pause)
            self._chunk(_event(name, data))
        self.wfile.write(b"0\r\n\r\n")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
        self.wfile.flush()

    def _reset(self) -> None:
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


def _event(name: str, data: dict[str, Any] | str) -> bytes:
    if isinstance(data, str):
        return f"data: {data}\n\n".encode()
    if not name:
        return b"data: " + json.dumps(data, ensure_ascii=False).encode() + b"\n\n"
    text = json.dumps({"type": name, **data}, ensure_ascii=False)
    return f"event: {name}\ndata: {text}\n\n".encode()


def _models(name: str) -> dict[str, Any]:
    model = {"id": name, "object": "model", "type": "model", "display_name": name, "created": 0, "owned_by": "script"}
    return {"object": "list", "data": [model], "has_more": False, "first_id": name, "last_id": name}
