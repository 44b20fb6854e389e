"""One request of an agent and its answer, as they are recorded or spooled. Pure."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from lcmsite.gateway.recording.session_finding import session_of
from lcmsite.gateway.surfaces import Surface, Task
from lcmsite.gateway.surfaces_answer import ReadAnswer


@dataclass(frozen=True)
class Exchange:
    """What came of a request. No credential is in it: the key of LCM is a hash."""

    exchange_key: str
    received_at: datetime
    key_hash: bytes
    surface: Surface
    task: Task
    # Those that name a session.
    headers: Mapping[str, str]
    # Decoded, and byte for byte otherwise.
    body: bytes = field(repr=False)

    @property
    def lane(self) -> str:
        """A name for all requests that are recorded in their order."""
        session = session_of(self.headers, {})
        return hashlib.sha256(self.key_hash + (session.name if session else "").encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """What became of a request: the vendor's status, and the answer if one was read."""

    status: int | None
    milliseconds: int
    error: str = ""
    answer: ReadAnswer | None = None
    # What the gateway looked up for it: the model's own rows, and how many of them the agent has.
    lookups: Mapping[str, Any] | None = None


def serialized(exchange: Exchange, outcome: Outcome) -> bytes:
    """The exchange as a line of JSON and the body behind it."""
    head = {
        "exchange_key": exchange.exchange_key,
        "received_at": exchange.received_at.isoformat(),
        "key_hash": base64.b64encode(exchange.key_hash).decode(),
        "surface": exchange.surface.value,
        "task": exchange.task.value,
        "headers": dict(exchange.headers),
        "status": outcome.status,
        "milliseconds": outcome.milliseconds,
        "error": outcome.error,
        "answer": None if outcome.answer is None else outcome.answer.as_json(),
        "lookups": outcome.lookups,
    }
    return json.dumps(head).encode() + b"\n" + exchange.body


def parsed(data: bytes) -> tuple[Exchange, Outcome]:
    """The exchange that was serialized; ValueError if this is none."""
    line, newline, body = data.partition(b"\n")
    if not newline:
        raise ValueError("This is no exchange.")
    try:
        head: dict[str, Any] = json.loads(line)
        answer = None if head["answer"] is None else ReadAnswer.from_json(head["answer"])
        exchange = Exchange(
            exchange_key=head["exchange_key"],
            received_at=datetime.fromisoformat(head["received_at"]),
            key_hash=base64.b64decode(head["key_hash"]),
            surface=Surface(head["surface"]),
            task=Task(head["task"]),
            headers=head["headers"],
            body=body,
        )
        return exchange, Outcome(head["status"], head["milliseconds"], head["error"], answer, head.get("lookups"))
    except (KeyError, TypeError) as wrong:
        raise ValueError("This is no exchange.") from wrong
