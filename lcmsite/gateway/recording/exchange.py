"""An exchange: one agent request and its answer, and its spool format. Pure."""

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
    """A request to record. It holds no credentials; of LCM's key, only a hash."""

    exchange_key: str
    received_at: datetime
    key_hash: bytes
    surface: Surface
    task: Task
    # Only the headers that identify the session (`hints_of`).
    headers: Mapping[str, str]
    # Decompressed, otherwise unchanged.
    body: bytes = field(repr=False)

    @property
    def lane(self) -> str:
        """The id of its lane: exchanges of one key's session, recorded in order."""
        session = session_of(self.headers, {})
        return hashlib.sha256(self.key_hash + (session.name if session else "").encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Outcome:
    """A request's result: the vendor's status, and the answer if it was parsed."""

    status: int | None
    milliseconds: int
    error: str = ""
    answer: ReadAnswer | None = None
    # Lookups made within the answer, as the journal stores them (`LookupRounds.journal_entry`).
    lookups: Mapping[str, Any] | None = None


def serialize_exchange(exchange: Exchange, outcome: Outcome) -> bytes:
    """Serialize an exchange: one line of JSON, then the request body."""
    head = {
        **vars(exchange),
        **vars(outcome),
        "received_at": exchange.received_at.isoformat(),
        "key_hash": base64.b64encode(exchange.key_hash).decode(),
        "answer": None if outcome.answer is None else outcome.answer.as_json(),
    }
    del head["body"]
    return json.dumps(head).encode() + b"\n" + exchange.body


def parse_exchange(data: bytes) -> tuple[Exchange, Outcome]:
    """Parse a serialized exchange. Raises ValueError if the data is not an exchange."""
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
