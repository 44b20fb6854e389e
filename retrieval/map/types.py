"""The states and records of map runs, and of their events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from conversations.work.queue import WorkState


class MapKind(StrEnum):
    """Who processes the items: a language model, or agents that claim them."""

    LLM = "llm"
    AGENTIC = "agentic"


class MapState(StrEnum):
    """The state of a run; in a failed run, no item has succeeded."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PauseReason(StrEnum):
    """Why a run is paused; the sweep resumes runs that wait for their model."""

    NONE = ""
    PERSON = "person"
    # The model failed too often, or cannot be called as it is configured.
    BREAKER = "breaker"
    # The site's limit on calls or tokens of the model is reached.
    SPEND = "spend"
    # The run's own budget is spent.
    BUDGET = "budget"
    # The input file is quarantined: release the file, then resume the run.
    QUARANTINE = "quarantine"


class ItemErrorKind(StrEnum):
    """Why an item failed, or the error of its last attempt."""

    TIMEOUT = "timeout"
    VALIDATION = "validation"
    MODEL = "model"
    BUDGET = "budget"
    LEASE_LOST = "lease_lost"
    AGENT = "agent"


class MapEventKind(StrEnum):
    """The kinds of events in the record of a run."""

    SUBMITTED = "submitted"
    CLAIMED = "claimed"
    COMPLETED = "completed"
    FAILED = "failed"
    RELEASED = "released"
    PAUSED = "paused"
    RESUMED = "resumed"
    CANCELLED = "cancelled"
    RETRIED = "retried"
    DELEGATED = "delegated"
    FINISHED = "finished"


@dataclass(frozen=True)
class MapRunRecord:
    """One map run: what was requested, its progress, and its results.

    `queued` items wait for a worker, or for the next attempt; `leased` items are in progress.
    """

    run_id: str
    kind: MapKind
    state: MapState
    pause_reason: PauseReason
    conversation_id: int | None
    input_file_id: str
    output_file_id: str | None
    failures_file_id: str | None
    prompt: str
    output_schema: Mapping[str, Any]
    model: str
    concurrency: int
    max_attempts: int
    temperature: float | None
    timeout_s: int
    budget_tokens: int | None
    spent_in: int
    spent_out: int
    retain: str
    delegated_scope: str
    kept_work: str
    grant_id: str | None
    read_only: bool
    parent_run_id: str | None
    idempotency_key: str | None
    total: int
    queued: int
    leased: int
    done: int
    failed: int
    prompt_hash: str
    schema_hash: str
    input_hash: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True)
class MapItemRecord:
    """One item with its input and output as JSON texts, and what went wrong."""

    item_id: int
    run_id: str
    position: int
    state: WorkState
    input: str
    output: str | None
    error_kind: ItemErrorKind | None
    last_error: str
    validation_errors: str
    refused_answers: int
    faults: int
    fence: int
    worker: str
    tokens_in: int
    tokens_out: int
    leased_until: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    # Whether the run's input file is quarantined; input, output and errors are withheld then.
    quarantined: bool = False


@dataclass(frozen=True)
class MapOutput:
    """A page of the outputs of a map run so far, in the order of the input."""

    run_id: str
    output_file_id: str | None
    failures_file_id: str | None
    items: tuple[MapItemRecord, ...]
    # The last position of this page, to continue after; absent at the end.
    next_position: int | None
    next_cursor: str | None = None


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
