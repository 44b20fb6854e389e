"""Return types of operations on events of map runs, and on claims of agents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from conversations.work.queue import WorkState
from retrieval.delegation.types import GrantRecord
from retrieval.map.types import MapEventKind


@dataclass(frozen=True)
class MapEventRecord:
    """One event of a map run; its `hash` also covers all earlier events of the run."""

    run_id: str
    seq: int
    at: datetime
    actor: str
    event: MapEventKind
    position: int | None
    input_hash: str
    output_hash: str
    details: Mapping[str, Any]
    previous_hash: str
    hash: str


@dataclass(frozen=True)
class MapExport:
    """The result of an export; `heads` has the last hash of each run."""

    lines: int
    runs: int
    heads: Mapping[str, str]


@dataclass(frozen=True)
class MapEventFinding:
    """An error in one line of an exported record; lines are numbered from 1."""

    line: int
    code: str
    detail: str


@dataclass(frozen=True)
class MapVerification:
    """The result of verifying an exported record: all findings counted, some listed."""

    source: str
    lines: int
    runs: int
    is_clean: bool
    finding_count: int
    by_code: Mapping[str, int]
    findings: tuple[MapEventFinding, ...]
    heads: Mapping[str, str]


@dataclass(frozen=True)
class ClaimTerms:
    """The terms on which an agent works on items of a run.

    `grant` lets the agent read more than its items, by `lcm_expand_query` with the `grant_id`; without a grant, it may
    read only its items. `read_only` forbids it to change anything outside LCM. LCM cannot enforce this; the agent must
    follow it.
    """

    read_only: bool
    retain: str
    delegated_scope: str
    kept_work: str
    grant: GrantRecord | None
    note: str


@dataclass(frozen=True)
class ClaimedItem:
    """An item that is leased to one agent.

    Every call about the item must pass its `fence`. `prompt` is the run's prompt with the item filled in.
    `validation_errors` quotes the last refused output and its errors.
    """

    item_id: int
    position: int
    fence: int
    leased_until: datetime
    prompt: str
    input: str
    refused_answers: int
    validation_errors: str


@dataclass(frozen=True)
class ClaimedItems:
    """Claimed items of a run, their terms, and the schema of each output.

    `open_items` counts the items of the run that are not finished. If items are open but none was claimed, they are
    leased to others, or the run is paused: claim again later.
    """

    run_id: str
    worker: str
    items: tuple[ClaimedItem, ...]
    open_items: int
    output_schema: Mapping[str, Any]
    max_attempts: int
    terms: ClaimTerms


@dataclass(frozen=True)
class HeldItem:
    """The lease of a claimed item after a heartbeat."""

    item_id: int
    run_id: str
    position: int
    fence: int
    leased_until: datetime


@dataclass(frozen=True)
class ItemOutcome:
    """The state of an item after it was completed or released.

    `state` is `done`, `failed` after the last attempt, or `queued` for another attempt by any agent. `repeated`: the
    same output was already recorded.
    """

    item_id: int
    run_id: str
    position: int
    state: WorkState
    attempts_left: int
    repeated: bool = False
