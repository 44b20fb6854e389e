"""Record and export the events of map runs: an append-only hash chain for each."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, Any

from django.db import transaction

from conversations.models.columns import record_of
from conversations.scope import Scoped
from retrieval.map.models import MapEvent, MapRun
from retrieval.map.types import MapEventKind, MapEventRecord, MapExport

_PORTION = 1000


def record_event(
    run: MapRun,
    event: MapEventKind,
    *,
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
        run_id=run.pk,
        workspace_id=run.workspace_id,
        event=event,
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
    place = "" if position is None else str(position)
    hashes = (input_hash.hex(), output_hash.hex())
    lines = (run_id, str(seq), _hashed_time(at), actor, event, place, *hashes, json.dumps(details))
    return hashlib.sha256(previous_hash + "\n".join(lines).encode()).digest()


@dataclass(frozen=True)
class MapRecord(Scoped):
    """Reads the record of map runs: append-only, with one hash chain for each run."""

    def list_events(self, *, run_id: str, after_seq: int | None = None, limit: int = 100) -> list[MapEventRecord]:
        """List the events of a map run, oldest first.

        The event of an item has the hashes of its input and its output. Raises NotFound.
        """
        runs = self.scope.narrow(MapRun.objects.filter(run_id=run_id))
        events = MapEvent.objects.filter(run_id__in=runs.values("run_id")).order_by("seq")
        if after_seq is not None:
            events = events.filter(seq__gt=after_seq)
        found = [_record(event) for event in events[:limit]]
        if not found:
            # Either `after_seq` is the newest event, or there is no such run: then this raises NotFound.
            self.scope.find(runs, "map run", run_id, run_id=run_id)
        return found

    def export(self, file: IO[bytes], *, run_id: str | None = None) -> MapExport:
        """Write the events of one run, or of all runs of the workspace, one per line.

        Runs are in the order of their submission, the events of each run in the order of `seq`. The result has the last
        hash of each run. If it is stored elsewhere, it shows later whether the newest events were removed.
        """
        heads: dict[str, str] = {}
        lines = 0
        for event in self._events(run_id):
            file.write(json.dumps(_line(event)).encode() + b"\n")
            heads[event.run_id] = bytes(event.hash).hex()
            lines += 1
        return MapExport(lines=lines, runs=len(heads), heads=heads)

    def _events(self, run_id: str | None) -> Iterator[MapEvent]:
        runs = self.scope.narrow(MapRun.objects.order_by("created_at", "run_id"))
        if run_id is not None:
            runs = runs.filter(pk=self.scope.find(runs, "map run", run_id, run_id=run_id).pk)
        for each in runs.values_list("pk", flat=True):
            yield from MapEvent.objects.filter(run_id=each).order_by("seq").iterator(chunk_size=_PORTION)


def _record(event: MapEvent) -> MapEventRecord:
    return record_of(MapEventRecord, event, event=MapEventKind(event.event))


def _line(event: MapEvent) -> dict[str, Any]:
    """The event as a JSON object, with the time in the format of the hashed text."""
    return {**vars(_record(event)), "at": _hashed_time(event.at)}


def _hashed_time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
