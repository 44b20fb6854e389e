"""Record the events of map runs: an append-only hash chain for each run."""

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
    """Record an event of a run, in the transaction of the change that it describes.

    Raises RuntimeError outside a transaction. The event locks the run's row until the transaction ends. So code that
    also locks items must lock the run first. `details` has ids, counts and kinds, never texts.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("An event is recorded in the transaction that makes it happen.")
    MapEvent.objects.create(
        run_id=run_id,
        workspace_id=workspace_id,
        event=MapEventKind(event),
        # On one line, because the hashed text has one line for each column.
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
    """Compute the hash of an event from its columns, like the database trigger."""
    moment = at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    place = "" if position is None else str(position)
    lines = (run_id, str(seq), moment, actor, event, place, input_hash.hex(), output_hash.hex(), json.dumps(details))
    return hashlib.sha256(previous_hash + "\n".join(lines).encode()).digest()
