"""Record events of map runs: append-only, each hash covering the event before."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import transaction

from retrieval.map.models import MapEvent
from retrieval.map.types import MapEventKind


def record_event(
    *,
    run_id: str,
    workspace_id: int,
    event: str,
    actor: str,
    position: int | None = None,
    input_hash: bytes = b"",
    output_hash: bytes = b"",
    details: Mapping[str, Any] | None = None,
) -> None:
    """Record an event of a run, in the transaction of the change it describes.

    Raises RuntimeError outside a transaction. It locks the run's row until the transaction ends, so code that locks
    items as well locks the run first. `details` holds ids, counts and kinds, never texts.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("An event is recorded in the transaction that makes it happen.")
    MapEvent.objects.create(
        run_id=run_id,
        workspace_id=workspace_id,
        event=MapEventKind(event),
        # On one line, as the text that is hashed has one for each column.
        actor=" ".join(actor.split()) or "system",
        position=position,
        input_hash=input_hash,
        output_hash=output_hash,
        details=dict(details or {}),
    )


def event_hash(
    *,
    previous_hash: bytes,
    run_id: str,
    seq: int,
    at: datetime,
    actor: str,
    event: str,
    position: int | None,
    input_hash: bytes,
    output_hash: bytes,
    details: Mapping[str, Any],
) -> bytes:
    """Compute an entry's hash as the database does, from its columns."""
    moment = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    place = "" if position is None else str(position)
    lines = (run_id, str(seq), moment, actor, event, place, input_hash.hex(), output_hash.hex(), json.dumps(details))
    return hashlib.sha256(previous_hash + "\n".join(lines).encode()).digest()
