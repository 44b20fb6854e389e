"""An embedder on this machine: a real HTTP server with a model of a few words.

A text's vector counts its words, where words of one meaning count as the same. It can be told to fail.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from zlib import crc32

MEANINGS = {
    "automobile": "car", "vehicle": "car", "feline": "cat", "kitten": "cat", "seaport": "harbour",
    "physician": "doctor", "repaired": "fixed", "mended": "fixed",
}  # fmt: skip


def vector_of(text: str, dimension: int) -> list[float]:
    vector = [0.0] * dimension
    for word in re.findall(r"[a-z0-9]+", text.lower()):
        vector[crc32(MEANINGS.get(word, word).encode()) % dimension] += 1.0
    vector[0] += 0.01
    return vector


@dataclass
class EmbedderServer:
    """Serves from `with` to the end of the block; `texts` are all that it has embedded."""

    dimension: int = 256
    # Of a request's body: the HTTP status to refuse it with, if any.
    refuses: Callable[[dict[str, Any]], int | None] = lambda body: None
    texts: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    # The only header of authorization that it lets in, if not all.
    key: str | None = None

    def __enter__(self) -> EmbedderServer:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.models.append(body["model"])
                given = self.headers.get("authorization")
                server.keys.append(given)
                is_let_in = server.key in (None, given)
                status = 401 if not is_let_in else 404 if self.path != "/v1/embeddings" else server.refuses(body) or 200
                if status == 200:
                    server.texts += body["input"]
                    answer = server.answer(body["input"])
                else:
                    answer = {"error": {"message": "no"}}
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def answer(self, texts: list[str]) -> dict[str, Any]:
        data = [{"index": place, "embedding": vector_of(text, self.dimension)} for place, text in enumerate(texts)]
        return {"data": data[::-1], "usage": {"prompt_tokens": sum(map(len, texts))}}
