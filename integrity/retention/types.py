"""Records of retention and erasure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class Tier(StrEnum):
    """Where texts are: in their rows and indexed, or compressed in blocks."""

    HOT = "hot"
    COLD = "cold"


@dataclass(frozen=True)
class TierMove:
    """What one call moved to a tier; if `more` is true, call again.

    `bytes_in_rows` is the size of the texts and search terms of these messages in rows, `bytes_in_blocks` their size in
    compressed blocks. `damaged_ids` are messages that do not match their hashes; they are not moved.
    """

    conversation_id: int
    tier: Tier
    messages: int
    blocks: int
    bytes_in_rows: int
    bytes_in_blocks: int
    # How many of the conversation's messages are cold now.
    cold_messages: int
    more: bool
    damaged_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetentionRecord:
    """The days without use after which a workspace's texts move to the cold tier.

    `effective_days` is the number that applies; absent means never. `due_conversations` counts the conversations
    without use for that long that are not entirely cold.
    """

    workspace_id: int
    cold_after_days: int | None
    default_days: int
    effective_days: int | None
    due_conversations: int


@dataclass(frozen=True)
class StorageStatistics:
    """The space that a workspace uses, by tier.

    `bytes_saved` is what the cold tier saves. `hot_bytes` counts texts, parts and search terms in rows, without
    indexes; absent if counting takes too long.
    """

    conversations: int
    messages: int
    hot_messages: int
    hot_bytes: int | None
    cold_messages: int
    cold_blocks: int
    cold_bytes: int
    cold_bytes_before: int
    bytes_saved: int
    erased_messages: int
    summaries: int
    summary_bytes: int
    files: int
    file_bytes: int


@dataclass(frozen=True)
class ErasedSummary:
    """A summary made from erased messages; `active` if it is in the active context."""

    summary_id: str
    depth: int
    first_seq: int
    last_seq: int
    token_count: int
    active: bool


@dataclass(frozen=True)
class ErasedFile:
    """A file that is erased.

    `bytes_stay`: another file of the workspace has the same bytes, so they stay.
    """

    file_id: str
    byte_size: int | None
    bytes_stay: bool


@dataclass(frozen=True)
class TextElsewhere:
    """Other texts that may quote messages, summaries or files, and their number.

    `is_erased`: the erasure removes them. A person must review the others.
    """

    what: str
    count: int
    is_erased: bool


@dataclass(frozen=True)
class CopiesElsewhere:
    """A conversation with copies of erased texts, and the number of its messages."""

    conversation_id: int
    session_id: str
    message_count: int


@dataclass(frozen=True)
class ErasurePreview:
    """What an erasure would remove.

    `erase` carries it out with this id and the confirmation. Every summary made from these messages, directly or
    through others, loses its text; summaries in the active context are regenerated from the remaining messages.
    `summaries` lists the first of them, `summary_count` counts all.
    """

    erasure_id: str
    conversation_id: int
    # Whether it covers the whole conversation, with its title, metadata and instructions.
    is_whole: bool
    expires_at: datetime
    # To be typed exactly.
    confirmation: str
    message_count: int
    first_seq: int | None
    last_seq: int | None
    part_count: int
    token_count: int
    cold_messages: int
    summary_count: int
    summary_tokens: int
    active_summaries: int
    summaries: tuple[ErasedSummary, ...]
    files: tuple[ErasedFile, ...]
    # Files that these messages need and that stay, because other messages need them, too.
    file_ids_kept: tuple[str, ...] = ()
    texts_elsewhere: tuple[TextElsewhere, ...] = ()
    # Up to 100 other conversations of the workspace with the same texts, such as forks; those with the most first. They
    # stay.
    copies_elsewhere: tuple[CopiesElsewhere, ...] = ()


@dataclass(frozen=True)
class ErasureResult:
    """A completed erasure, its audit entry, and the job that regenerates summaries."""

    erasure_id: str
    conversation_id: int
    audit_id: int
    erased_at: datetime
    message_count: int
    summary_count: int
    file_count: int
    job_id: int | None
