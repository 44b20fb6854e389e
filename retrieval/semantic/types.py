"""The states and records of embedders."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EmbedderState(StrEnum):
    """Whether an embedder is not complete yet, in use for searches, or replaced."""

    BUILDING = "building"
    CURRENT = "current"
    OLD = "old"


class IndexState(StrEnum):
    """The state of a vector index; `lost`: pgvector, or the table, is gone."""

    ABSENT = "absent"
    INCOMPLETE = "incomplete"
    BUILT = "built"
    LOST = "lost"


@dataclass(frozen=True)
class EmbedderRecord:
    """One embedder, with its progress, its failures and its size."""

    embedder_id: int
    model: str
    host: str
    dimension: int
    state: EmbedderState
    created_at: datetime
    switched_at: datetime | None
    messages: int
    messages_embedded: int
    passages: int
    # Passages that the embedder refused or failed to embed, found by words alone; the newest of them with reasons.
    passages_refused: int
    refusals: tuple[str, ...]
    conversations_waiting: int
    conversations_failed: int
    index: IndexState
    size_bytes: int
    # An error of a conversation that is not done; empty if there is none.
    last_error: str
    # Whether it is the one that the settings name.
    is_configured: bool


@dataclass(frozen=True)
class SemanticStatus:
    """Whether semantic search is available, what it lacks, and all embedders."""

    is_configured: bool
    # Settings without which no embedder can be set up.
    missing_settings: tuple[str, ...]
    # The version of pgvector that the server has, or could have; None for none.
    pgvector: str | None
    # Whether searches by meaning are answered now.
    is_ready: bool
    note: str
    embedders: tuple[EmbedderRecord, ...]
