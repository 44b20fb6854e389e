"""Embedders, and how far each has come."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class EmbedderState(StrEnum):
    """What an embedder's index is for: not complete yet, searched, or replaced."""

    BUILDING = "building"
    CURRENT = "current"
    OLD = "old"


class IndexState(StrEnum):
    """The index of the nearest vectors; `lost`: pgvector, or the table, is gone."""

    ABSENT = "absent"
    INCOMPLETE = "incomplete"
    BUILT = "built"
    LOST = "lost"


@dataclass(frozen=True)
class EmbedderRecord:
    """One embedder, and how much it has embedded, failed at, and takes on disk."""

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
    # Passages that the embedder refuses, or fails at again and again; words find them. The newest of them, and why.
    passages_refused: int
    refusals: tuple[str, ...]
    conversations_waiting: int
    conversations_failed: int
    index: IndexState
    size_bytes: int
    # Why the last of the work under way came to nothing, if it did.
    last_error: str
    # Whether it is the one that the settings name.
    is_configured: bool


@dataclass(frozen=True)
class SemanticStatus:
    """Whether search by meaning can be had, what it needs, and all embedders."""

    is_configured: bool
    # Without one of these, nothing can be set up.
    missing_settings: tuple[str, ...]
    # The version of pgvector that the server has, or could have; None for none.
    pgvector: str | None
    # Whether searches by meaning are answered now.
    is_ready: bool
    note: str
    embedders: tuple[EmbedderRecord, ...]
