"""An embedder on this machine: a real HTTP server with a model of a few words.

A text's vector counts its words, where words of one meaning count as the same. It can be told to fail.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from zlib import crc32

from tests.loopback import Loopback, LoopbackHandler

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


class EmbedderServer(Loopback):
    """Serves from `with` to the end of the block; `texts` are all that it has embedded."""

    def __init__(self, dimension: int = 256) -> None:
        super().__init__(_Handler)
        self.dimension = dimension
        # Of a request's body: the HTTP status to refuse it with, if any.
        self.refuses: Callable[[dict[str, Any]], int | None] = lambda body: None
        self.texts: list[str] = []
        self.models: list[str] = []
        self.keys: list[str | None] = []
        # The only header of authorization that it lets in, if not all.
        self.key: str | None = None

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    def answer(self, texts: list[str]) -> dict[str, Any]:
        data = [{"index": place, "embedding": vector_of(text, self.dimension)} for place, text in enumerate(texts)]
        return {"data": data[::-1], "usage": {"prompt_tokens": sum(map(len, texts))}}


class _Handler(LoopbackHandler):
    def take(self) -> None:
        server: EmbedderServer = self.owner
        body = json.loads(self.read_body())
        server.models.append(body["model"])
        given = self.headers.get("authorization")
        server.keys.append(given)
        is_let_in = server.key in (None, given)
        status = 401 if not is_let_in else 404 if self.path != "/v1/embeddings" else server.refuses(body) or 200
        answer: dict[str, Any] = {"error": {"message": "no"}}
        if status == 200:
            server.texts += body["input"]
            answer = server.answer(body["input"])
        self.answer(status, json.dumps(answer).encode())
