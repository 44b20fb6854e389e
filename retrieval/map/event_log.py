"""Record, export and verify the events of map runs: a hash chain for each run.

An exported record is verified from the file alone.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any

from django.db import transaction

from conversations.ledger.lines import as_text
from conversations.models.columns import record_of
from conversations.scope import Scoped
from retrieval.map.models import MapEvent, MapRun
from retrieval.map.types import MapEventFinding, MapEventKind, MapEventRecord, MapExport, MapVerification

_PORTION = 1000
# The maximum number of listed findings; all findings are counted.
MOST_LISTED = 20
# The exact types of the compared fields. `isinstance` would accept `True` as an integer.
_TYPES: Mapping[str, tuple[type, ...]] = {
    "run_id": (str,),
    "seq": (int,),
    "event": (str,),
    "position": (int, type(None)),
    "previous_hash": (str,),
    "hash": (str,),
}


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


def event_hash(event: Mapping[str, Any]) -> str:
    """Compute the hash of an exported event, like the database trigger."""
    at = as_text(datetime.fromisoformat(event["at"]))
    place = "" if event["position"] is None else str(event["position"])
    previous, *hashes = (bytes.fromhex(event[name]) for name in ("previous_hash", "input_hash", "output_hash"))
    lines = (event["run_id"], str(event["seq"]), at, event["actor"], event["event"], place, *(h.hex() for h in hashes))
    return hashlib.sha256(previous + "\n".join((*lines, json.dumps(event["details"]))).encode()).hexdigest()


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
    return {**vars(_record(event)), "at": as_text(event.at)}


@dataclass
class _Chain:
    """The state of the chain of one run after the lines read so far."""

    seq: int = 0
    head: str = ""
    completed: set[int] = field(default_factory=set)


@dataclass
class _Reading:
    """The chains and findings after the lines read so far."""

    # The expected hashes that no event has had so far.
    missing: set[str] = field(default_factory=set)
    chains: dict[str, _Chain] = field(default_factory=dict)
    by_code: Counter[str] = field(default_factory=Counter)
    findings: list[MapEventFinding] = field(default_factory=list)

    def take(self, number: int, line: bytes) -> None:
        """Check the hash of one line, and that it continues the chain of its run."""
        try:
            event = json.loads(line)
            if wrong_types := [name for name, types in _TYPES.items() if type(event[name]) not in types]:
                raise TypeError(", ".join(wrong_types))
            sealed = event_hash(event)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as wrong:
            self.add(number, "unreadable", f"is no event: {type(wrong).__name__}")
            return
        chain = self.chains.setdefault(event["run_id"], _Chain())
        self._compare(number, chain, event)
        if event["hash"] != sealed:
            self.add(number, "hash_differs", f"event {event['seq']} does not have the hash of its fields")
        chain.seq, chain.head = event["seq"], event["hash"]
        self.missing.discard(event["hash"])

    def _compare(self, number: int, chain: _Chain, event: Mapping[str, Any]) -> None:
        seq = event["seq"]
        if seq != chain.seq + 1:
            self.add(number, "seq_differs", f"event {seq} follows event {chain.seq}")
        elif event["previous_hash"] != chain.head:
            self.add(number, "chain_differs", f"event {seq} does not follow from event {chain.seq}")
        if seq == 1 and event["event"] != MapEventKind.SUBMITTED:
            self.add(number, "not_submitted", "the first event is not that of a submission")
        if event["event"] == MapEventKind.COMPLETED:
            if event["position"] in chain.completed:
                self.add(number, "completed_twice", f"item {event['position']} was completed before")
            chain.completed.add(event["position"])

    def add(self, line: int, code: str, detail: str) -> None:
        self.by_code[code] += 1
        if len(self.findings) < MOST_LISTED:
            self.findings.append(MapEventFinding(line, code, detail))


def verify_events(lines: Iterable[bytes], *, name: str, expected: Collection[str] = ()) -> MapVerification:
    """Recompute every hash of an exported record, and each run's chain.

    `expected` are last hashes of an earlier export. Each must be the hash of an event. A missing hash shows that the
    newest events were removed, or that an event was altered and all later hashes were computed again.
    """
    reading = _Reading(missing={each.lower() for each in expected})
    number = 0
    for number, line in enumerate(lines, start=1):
        reading.take(number, line)
    for head in sorted(reading.missing):
        reading.add(number, "expected_missing", f"no event has the expected hash {head[:64]}")
    return MapVerification(
        source=name,
        lines=number,
        runs=len(reading.chains),
        is_clean=not reading.by_code,
        finding_count=reading.by_code.total(),
        by_code=dict(reading.by_code),
        findings=tuple(reading.findings),
        heads={run_id: chain.head for run_id, chain in reading.chains.items()},
    )
