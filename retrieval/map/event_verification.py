"""Verify an exported record of map runs from the file alone."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from retrieval.map.event_log import event_hash
from retrieval.map.types import MapEventFinding, MapEventKind, MapVerification

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
            at = datetime.fromisoformat(event["at"])
            sealed = event_hash(
                previous_hash=bytes.fromhex(event["previous_hash"]),
                run_id=event["run_id"],
                seq=event["seq"],
                at=at,
                actor=event["actor"],
                event=event["event"],
                position=event["position"],
                input_hash=bytes.fromhex(event["input_hash"]),
                output_hash=bytes.fromhex(event["output_hash"]),
                details=event["details"],
            )
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as wrong:
            self.add(number, "unreadable", f"is no event: {type(wrong).__name__}")
            return
        chain = self.chains.setdefault(event["run_id"], _Chain())
        self._compare(number, chain, event)
        if event["hash"] != sealed.hex():
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
