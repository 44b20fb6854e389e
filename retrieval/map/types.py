"""The states and records of map runs."""

from __future__ import annotations

from enum import StrEnum


class MapKind(StrEnum):
    """Who processes the items: a language model, or agents that claim them."""

    LLM = "llm"
    AGENTIC = "agentic"


class MapState(StrEnum):
    """Where a run is; a failed run has no item that succeeded."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class PauseReason(StrEnum):
    """Why a run is paused; the sweep resumes those of a model by itself."""

    NONE = ""
    PERSON = "person"
    # The model failed too often, or cannot be called as it is configured.
    BREAKER = "breaker"
    # The site's limit on calls or tokens of the model.
    SPEND = "spend"
    # The run's own budget.
    BUDGET = "budget"


class ItemErrorKind(StrEnum):
    """Why an item failed, or what its last attempt met."""

    TIMEOUT = "timeout"
    VALIDATION = "validation"
    MODEL = "model"
    BUDGET = "budget"
    LEASE_LOST = "lease_lost"
    AGENT = "agent"


class MapEventKind(StrEnum):
    """What the record of a run holds."""

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
