"""Frozen records that the store's services take and return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import ConfigDict

from conversations.content.json_values import Flag, Int32, Moment, Name, Price

# Unknown fields in callers' input are refused.
INCOMING = ConfigDict(extra="forbid")


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class SummaryKind(StrEnum):
    LEAF = "leaf"
    CONDENSED = "condensed"


class ContextItemType(StrEnum):
    MESSAGE = "message"
    SUMMARY = "summary"


class ParentLink(StrEnum):
    """How a conversation relates to its parent."""

    SUBAGENT = "subagent"
    FORK = "fork"


class PartType(StrEnum):
    TEXT = "text"
    REASONING = "reasoning"
    TOOL = "tool"
    PATCH = "patch"
    FILE = "file"
    SUBTASK = "subtask"
    COMPACTION = "compaction"
    STEP_START = "step_start"
    STEP_FINISH = "step_finish"
    SNAPSHOT = "snapshot"
    AGENT = "agent"
    RETRY = "retry"


class Level(StrEnum):
    """The three escalation levels of summarizing."""

    NORMAL = "normal"
    AGGRESSIVE = "aggressive"
    DETERMINISTIC = "deterministic"

    @property
    def confidence(self) -> float:
        """The confidence in a summary of this level, from 0 to 1."""
        return _CONFIDENCE[self][0]

    @property
    def confidence_reason(self) -> str:
        """The specification's term for why the confidence is no higher."""
        return _CONFIDENCE[self][1]


_CONFIDENCE = {
    Level.NORMAL: (0.7, "single-memory"),
    Level.AGGRESSIVE: (0.5, "pattern-matched"),
    Level.DETERMINISTIC: (0.3, "llm-uncertain"),
}


@dataclass(frozen=True)
class NewPart:
    """One typed piece of a message, as the caller gives it."""

    __pydantic_config__ = INCOMING

    part_type: PartType
    text_content: str | None = None
    is_ignored: Flag | None = None
    is_synthetic: Flag | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    tool_status: str | None = None
    tool_input: Any = None
    tool_output: str | None = None
    tool_error: str | None = None
    tool_title: str | None = None
    patch_hash: str | None = None
    patch_files: tuple[str, ...] | None = None
    file_mime: str | None = None
    file_name: str | None = None
    file_url: str | None = None
    subtask_prompt: str | None = None
    subtask_desc: str | None = None
    subtask_agent: str | None = None
    step_reason: str | None = None
    step_cost: Price | None = None
    step_tokens_in: Int32 | None = None
    step_tokens_out: Int32 | None = None
    snapshot_hash: str | None = None
    compaction_auto: Flag | None = None
    metadata: Any = None


# The columns of a part that callers give, in the order of the specification.
PART_COLUMNS = tuple(NewPart.__dataclass_fields__)


@dataclass(frozen=True)
class NewMessage:
    """A message to store. Without `content`, its text is joined from the parts."""

    __pydantic_config__ = INCOMING

    role: Role
    content: str | None = None
    parts: tuple[NewPart, ...] = ()
    author: Name | None = None
    created_at: Moment | None = None
    idempotency_key: Name | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PartRecord(NewPart):
    """A stored part."""

    part_id: str = ""
    message_id: int = 0
    ordinal: int = 0


@dataclass(frozen=True)
class MessageRecord:
    """A stored message, its texts exactly as they were appended."""

    message_id: int
    conversation_id: int
    seq: int
    role: Role
    content: str
    token_count: int
    token_counter: str
    created_at: datetime
    content_hash: str
    chain_hash: str
    author: str | None = None
    idempotency_key: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[PartRecord, ...] = ()
    # The audit entry of the erasure of its texts; only the message's seq and hashes are left then.
    erased_by_id: int | None = None
    # Whether the message is quarantined; its texts are withheld then.
    quarantined: bool = False

    @property
    def id(self) -> str:
        return f"msg_{self.message_id}"


@dataclass(frozen=True)
class AppendedMessage:
    """The id and seq of an appended message; `created`: it was not stored before."""

    message_id: int
    seq: int
    token_count: int
    content_hash: str
    created: bool
    # False for a message that was stored before and is no longer on the path of the head.
    active: bool = True
    # Whether the message was stored before and erased since; then the text of the request was not stored.
    erased: bool = False

    @property
    def id(self) -> str:
        return f"msg_{self.message_id}"


@dataclass(frozen=True)
class Counters:
    """Counts of messages and tokens that a conversation's row keeps."""

    message_count: int
    active_messages: int
    active_tokens: int
    total_tokens: int = 0
    rest_until_seq: int = 0


@dataclass(frozen=True)
class MovedText:
    """A text too long for `field` of its message or part, moved to a file."""

    message_id: int
    part_ordinal: int | None
    field: str
    file_id: str
    byte_size: int


@dataclass(frozen=True)
class SkippedText:
    """Text that LCM injected into a prompt, left out of an append.

    `position` is the position of the message in the request, counted from 1. `is_whole`: the message had no other text,
    so no message was stored for it.
    """

    position: int
    characters: int
    is_whole: bool


@dataclass(frozen=True)
class AppendResult:
    """The result of an append; `moved` lists the texts that were moved to files.

    `messages` are the stored messages; `skipped` lists texts that LCM had injected, which were not stored again.
    """

    conversation_id: int
    messages: tuple[AppendedMessage, ...]
    counters: Counters
    moved: tuple[MovedText, ...] = ()
    skipped: tuple[SkippedText, ...] = ()


@dataclass(frozen=True)
class ConversationRecord:
    conversation_id: int
    session_id: str
    title: str | None
    created_at: datetime
    updated_at: datetime
    counters: Counters
    metadata: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    # The number of its cold messages, and of its quarantined messages, parts, summaries and files.
    cold_messages: int = 0
    quarantined: int = 0
    # The name of its project, and the conversation that it is a subagent's or a fork of.
    project: str | None = None
    parent_id: int | None = None
    parent_link: ParentLink | None = None
    # The seq of the message that the next one follows.
    head_seq: int = 0
    # The number of moves of the head: above 0, there may be branches.
    moves: int = 0
    # In lists: the beginning of its first prompt, if it has no title.
    first_prompt: str | None = None


@dataclass(frozen=True)
class OpenedConversation(ConversationRecord):
    """An opened conversation; `left_as_it_was` names given fields not applied."""

    created: bool = False
    left_as_it_was: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class NewSummary:
    """A finished summary and its range, to be written with its lineage."""

    summary_id: str = ""
    conversation_id: int
    kind: SummaryKind
    depth: int
    content: str
    token_count: int
    token_counter: str
    first_seq: int
    last_seq: int
    earliest_at: datetime
    latest_at: datetime
    source_count: int
    descendant_count: int
    source_tokens: int
    level: Level
    model: str
    summary_hash: str
    run_id: str
    file_ids: tuple[str, ...] = ()
    quality: Mapping[str, Any] = field(default_factory=dict)
    # The share, from 0 to 1, of the sources' paths, identifiers, numbers, codes, addresses and names that it contains.
    retention: float | None = None
    # Whether it, or one of its sources, was made by a lesser method than configured, so that it should be regenerated.
    is_degraded: bool = False
    # The summary of the same sources that this one replaces.
    supersedes_id: str | None = None
    # How it was made: the hash of the prompt's version, the tokens sent to and received from the model, the duration.
    prompt_hash: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    duration_ms: int = 0


@dataclass(frozen=True, kw_only=True)
class SummaryRecord(NewSummary):
    """A stored summary. Immutable."""

    created_at: datetime
    # The audit entry of the erasure of its text, together with a message it was made from.
    erased_by_id: int | None = None


@dataclass(frozen=True)
class ContextItemRecord:
    conversation_id: int
    ordinal: int
    item_type: ContextItemType
    token_count: int
    message_id: int | None = None
    summary_id: str | None = None


@dataclass(frozen=True)
class LargeFileRecord:
    file_id: str
    conversation_id: int
    file_name: str | None
    mime_type: str | None
    byte_size: int | None
    storage_uri: str
    exploration_summary: str | None
    created_at: datetime
    content_hash: str | None = None
    # The audit entry of the erasure of its bytes and its description.
    erased_by_id: int | None = None
    # Whether the file is quarantined; its bytes, name and description are withheld then.
    quarantined: bool = False


@dataclass(frozen=True)
class UploadRecord:
    """The progress of an upload; `missing` lists the first missing chunks' offsets."""

    upload_id: str
    conversation_id: int
    byte_size: int
    chunk_bytes: int
    chunks_received: int
    chunks_missing: int
    missing: tuple[int, ...]
    expires_at: datetime
    file_name: str | None = None
    mime_type: str | None = None
    # As announced when the upload began.
    sha256: str | None = None
    # The file, once the upload is finished and its chunks are removed.
    file_id: str | None = None


@dataclass(frozen=True)
class AuditRecord:
    """One audit entry: who did what (`act`) to which `target`, and when."""

    audit_id: int
    recorded_at: datetime
    workspace_id: int | None
    conversation_id: int | None
    actor: str
    act: str
    target: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
