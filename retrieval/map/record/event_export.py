"""Export the record of map runs as JSON Lines, and list the events of one run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC
from typing import IO, Any

from conversations.scope import Scoped
from retrieval.map.models import MapEvent, MapRun
from retrieval.map.record_types import MapEventRecord, MapExport
from retrieval.map.types import MapEventKind

# The default name of the file that the record is exported to.
FILE_NAME = "map.events.jsonl"
_PORTION = 1000


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
        found = [record_of(event) for event in events[:limit]]
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
            file.write(json.dumps(line_of(event)).encode() + b"\n")
            heads[event.run_id] = bytes(event.hash).hex()
            lines += 1
        return MapExport(lines=lines, runs=len(heads), heads=heads)

    def _events(self, run_id: str | None) -> Iterator[MapEvent]:
        runs = self.scope.narrow(MapRun.objects.order_by("created_at", "run_id"))
        if run_id is not None:
            runs = runs.filter(pk=self.scope.find(runs, "map run", run_id, run_id=run_id).pk)
        for each in runs.values_list("pk", flat=True):
            yield from MapEvent.objects.filter(run_id=each).order_by("seq").iterator(chunk_size=_PORTION)


def record_of(event: MapEvent) -> MapEventRecord:
    """Build the record of an event, with its hashes in hexadecimal."""
    return MapEventRecord(
        run_id=event.run_id,
        seq=event.seq,
        at=event.at,
        actor=event.actor,
        event=MapEventKind(event.event),
        position=event.position,
        input_hash=bytes(event.input_hash).hex(),
        output_hash=bytes(event.output_hash).hex(),
        details=event.details,
        previous_hash=bytes(event.previous_hash).hex(),
        hash=bytes(event.hash).hex(),
    )


def line_of(event: MapEvent) -> dict[str, Any]:
    """The event as a JSON object, with the time in the format of the hashed text."""
    moment = event.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return {**vars(record_of(event)), "at": moment}
