"""The records of retention and erasure: what moved where, what it takes up, what an erasure would take along."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

# What an erasure takes from a part besides its texts. Which tool was called and which result answers which call stay:
# they are the joints of the conversation around it.
ERASED_PART_NAMES = ("patch_hash", "file_mime", "file_name", "subtask_agent", "step_reason", "snapshot_hash")


class Tier(StrEnum):
    """Where texts are: in their rows, indexed; or compressed in blocks, found by id and read like any other."""

    HOT = "hot"
    COLD = "cold"


@dataclass(frozen=True)
class TierMove:
    """What one call moved to a tier, in how many blocks; with `more`, a further call goes on from there.

    `bytes_in_rows` is what texts and search terms of these messages take in their rows, `bytes_in_blocks` what they
    take in blocks. `damaged_ids` are messages that do not match their hashes: they stay, for the check to find.
    """

    conversation_id: int
    tier: Tier
    messages: int
    blocks: int
    bytes_in_rows: int
    bytes_in_blocks: int
    # Of all messages of the conversation, how many are cold now.
    cold_messages: int
    more: bool
    damaged_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class RetentionRecord:
    """A workspace's rule: after so many days without use, texts go cold. Its own, or the site's default.

    `effective_days` is what holds; None for never. `due_conversations` have been unused for as long and are not all
    cold.
    """

    workspace_id: int
    cold_after_days: int | None
    default_days: int
    effective_days: int | None
    due_conversations: int


@dataclass(frozen=True)
class StorageStatistics:
    """What a workspace takes up, by tier. `bytes_saved` is what cold texts took in their rows less what they take now.

    `hot_bytes` are the texts, parts and search terms in the rows, without the indexes over them; None where counting
    them would have taken too long.
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
    """A summary that holds something of what is to be erased; `active`: a model sees it now."""

    summary_id: str
    depth: int
    first_seq: int
    last_seq: int
    token_count: int
    active: bool


@dataclass(frozen=True)
class ErasedFile:
    """A file that goes along; `bytes_stay` where another file of the workspace has the same bytes."""

    file_id: str
    byte_size: int | None
    bytes_stay: bool


@dataclass(frozen=True)
class TextElsewhere:
    """Words outside of messages, summaries and files that may quote them, and how many such texts there are.

    `is_erased` says whether the erasure takes them along; the others are for a person to look at.
    """

    what: str
    count: int
    is_erased: bool


@dataclass(frozen=True)
class ErasurePreview:
    """What an erasure would take: nothing has been touched. `erase`, with this id and the confirmation, carries it out.

    Every summary that was made from these messages, however far, loses its text; those that a model sees are made again
    from what remains. `summaries` lists the first of them, `summary_count` counts them all.
    """

    erasure_id: str
    conversation_id: int
    # Whether it is all of the conversation, with its title, metadata and instructions.
    is_whole: bool
    expires_at: datetime
    # To be typed, letter by letter.
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
    # Files that these messages hold or name and that stay, because other messages do so, too.
    file_ids_kept: tuple[str, ...] = ()
    texts_elsewhere: tuple[TextElsewhere, ...] = ()


@dataclass(frozen=True)
class ErasureResult:
    """What was erased for good, and the act in the audit log that says so. `job_id`: who makes summaries again."""

    erasure_id: str
    conversation_id: int
    audit_id: int
    erased_at: datetime
    message_count: int
    summary_count: int
    file_count: int
    job_id: int | None
