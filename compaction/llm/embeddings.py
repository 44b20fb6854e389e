"""Call an embedder: a server that speaks the OpenAI embeddings API.

A call has a timeout and is not retried: its caller continues without vectors, or tries again later. A guard with a
circuit breaker and a spending limit checks each call, as it does for calls of language models.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from compaction.llm.protocols import count_in, read_json
from compaction.llm.transport import send
from compaction.llm.types import BadAnswer, CallOutcome, HttpRequest, Misconfigured, ModelFailed, Usage
from compaction.summarizing.extractive.clean_text import estimate_tokens
from conversations.policy import Policy, Secret, SecretFile, knob, read_secret

EMBEDDER = "embedder"
# Maximum number of texts in one call, and of bytes in a response: enough for the longest vectors, as decimals.
MOST_TEXTS = 16
LONGEST_ANSWER = 8_000_000
# The timeouts of a call with a question and of one with passages.
QUESTION_SECONDS, PASSAGES_SECONDS = 3.0, 120.0
_PATH = "/embeddings"


@dataclass(frozen=True)
class EmbedderPolicy(Policy):
    """The settings of semantic search: the server that makes embeddings."""

    embedder_url: str = knob(
        "",
        "A server that speaks the OpenAI embeddings API: its base URL, such as https://host/v1. Without one, search "
        "is by words only. Then run `lcm embed setup`, which makes the index.",
        schemes=("http", "https"),
    )
    embedder_model: str = knob(
        "",
        "The model at that server that makes embeddings. If texts and questions need different models, name both with "
        "a comma, such as e5-passage,e5-query.",
    )
    embedder_key: str | SecretFile = knob("", "The API key for that server, if it needs one.", secret=True)
    embedder_price: float = knob(
        0.0, "The price of a million tokens of this model; 0 if unknown.", low=0.0, high=1_000_000.0
    )

    @property
    def is_configured(self) -> bool:
        return bool(self.embedder_url and self.embedder_model)

    @property
    def passage_model(self) -> str:
        """The model that makes vectors of texts."""
        return self.embedder_model.partition(",")[0].strip()

    @property
    def question_model(self) -> str:
        """The model that makes vectors of questions: the same if only one is configured."""
        return self.embedder_model.rpartition(",")[2].strip()

    @property
    def endpoint_key(self) -> str:
        """The primary key of the configured embedder's row in `model_endpoints`."""
        return endpoint_key(url=self.embedder_url, model=self.passage_model, question_model=self.question_model)

    @property
    def missing(self) -> tuple[str, ...]:
        """The missing settings without which nothing can be embedded."""
        return tuple(f"LCM_{name.upper()}" for name in ("embedder_url", "embedder_model") if not getattr(self, name))

    @property
    def what_is_missing(self) -> str:
        """The missing settings as a clause, such as "LCM_EMBEDDER_URL is not set"."""
        return f"{' and '.join(self.missing)} {'is' if len(self.missing) == 1 else 'are'} not set"

    @property
    def prices(self) -> tuple[float, float] | None:
        """The prices of a million input and output tokens; None if unknown."""
        return (self.embedder_price, 0.0) if self.embedder_price else None

    def key_for(self, url: str) -> str | SecretFile:
        """Return the API key if `url` is the configured server, else an empty one."""
        return self.embedder_key if url == self.embedder_url else Secret()

    def require_usable(self) -> None:
        """Raise Misconfigured, with the setting, if no call could be made."""
        if self.missing:
            raise Misconfigured(f"no embedder is configured: set {' and '.join(self.missing)}")
        url = urlsplit(self.embedder_url)
        if not url.hostname or url.username is not None or url.password is not None or url.query or url.fragment:
            raise Misconfigured("LCM_EMBEDDER_URL must name a host, and no user, password, query or fragment")
        if not self.passage_model or not self.question_model or self.embedder_model.count(",") > 1:
            raise Misconfigured("LCM_EMBEDDER_MODEL must be the name of a model, or two with a comma")
        _read_key(self.embedder_key)


def _read_key(given: str | SecretFile) -> Secret:
    """Return the API key; raises Misconfigured if it cannot be read or sent."""
    key, wrong = read_secret(given)
    if wrong:
        raise Misconfigured(f"LCM_EMBEDDER_KEY_FILE: {wrong}")
    if any(not "!" <= character <= "~" for character in key):
        # As a header, the key would fail later, with an error of the HTTP library that quotes it.
        raise Misconfigured("LCM_EMBEDDER_KEY holds a blank, a line break or a character beyond ASCII")
    return key


def endpoint_key(*, url: str, model: str, question_model: str) -> str:
    """Return the primary key of an embedder's row in `model_endpoints`.

    Each server and model has a circuit breaker of its own. The URL is hashed because it may contain a secret.
    """
    place = json.dumps([url, model, question_model])
    return f"{EMBEDDER} {hashlib.sha256(place.encode()).hexdigest()[:16]}"


class WrongDimension(BadAnswer):
    """The embedder returned vectors of another dimension than the index has."""

    def __init__(self, found: int, wanted: int, *, usage: Usage) -> None:
        super().__init__(f"its vectors have {found} numbers, and those of the index {wanted}", usage=usage)


@dataclass(frozen=True)
class EmbeddingClient:
    """The client of one embedding model, whose vectors must have `dimension` numbers.

    `before_call` is called before every call, and may forbid it by raising; `after_call` is called after it.
    """

    url: str
    model: str
    dimension: int | None = None
    key: str | SecretFile = field(default=Secret(), repr=False)
    timeout_seconds: float = PASSAGES_SECONDS
    before_call: Callable[[], None] = lambda: None
    after_call: Callable[[CallOutcome, Usage], None] = lambda outcome, usage: None

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return a vector for each of at most `MOST_TEXTS` texts; raises ModelFailed."""
        # The request is built first: if the key cannot be sent, no call is made.
        request = self._request(texts)
        self.before_call()
        try:
            vectors, usage = self._vectors(request, texts)
        except ModelFailed as failed:
            self.after_call(CallOutcome(failed.reason), failed.usage)
            raise
        self.after_call(CallOutcome.ANSWERED, usage)
        return vectors

    def _vectors(self, request: HttpRequest, texts: Sequence[str]) -> tuple[list[list[float]], Usage]:
        estimate = Usage(round(sum(map(estimate_tokens, texts))))
        payload = read_json(send(request, self.timeout_seconds, cost=estimate, longest=LONGEST_ANSWER))
        usage = Usage(count_in(payload.get("usage"), "prompt_tokens", "total_tokens") or estimate.tokens_in)
        vectors = _vectors_in(payload, len(texts), usage)
        found = len(vectors[0])
        if self.dimension is not None and found != self.dimension:
            raise WrongDimension(found, self.dimension, usage=usage)
        return vectors, usage

    def _request(self, texts: Sequence[str]) -> HttpRequest:
        """Build the request; `url` may end in /embeddings, or be a base URL such as /v1."""
        base = self.url.rstrip("/")
        headers = {"content-type": "application/json"}
        if key := _read_key(self.key):
            headers["authorization"] = f"Bearer {key}"
        body = {"model": self.model, "input": list(texts), "encoding_format": "float"}
        return HttpRequest(base if base.endswith(_PATH) else base + _PATH, headers, json.dumps(body).encode())


def _vectors_in(payload: Mapping[str, Any], wanted: int, usage: Usage) -> list[list[float]]:
    """Return the vectors in a response, in the texts' order; raises BadAnswer."""
    data = payload.get("data")
    found: dict[int, list[float]] = {}
    for place, row in enumerate(data if isinstance(data, list) else []):
        vector = row.get("embedding") if isinstance(row, Mapping) else None
        index = row.get("index", place) if isinstance(row, Mapping) else None
        if isinstance(index, int) and isinstance(vector, list) and all(map(_is_number, vector)) and any(vector):
            found[index] = _of_length_one(vector)
    if found.keys() != set(range(wanted)) or len(set(map(len, found.values()))) != 1:
        raise BadAnswer("the answer is not one vector for each text", usage=usage)
    return [found[place] for place in range(wanted)]


def _of_length_one(vector: Sequence[float]) -> list[float]:
    """Normalize the vector: only directions are compared."""
    length = math.hypot(*vector)
    return [each / length for each in vector]


def _is_number(value: object) -> bool:
    # False also for NaN. The sum of the squares of larger numbers could overflow.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e100
