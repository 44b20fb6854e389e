"""The records of assembly: what a model gets to see, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from conversations.formats.rendered import MessageFormat, Repair
from conversations.types import ContextItemType, PartRecord, Role


class AssemblyReason(StrEnum):
    """Why something is in an assembled context, or is not."""

    SYSTEM = "system"
    FRESH_TAIL = "fresh_tail"
    PINNED = "pinned"
    RELEVANT = "relevant"
    FITS = "fits"
    BUDGET = "budget"
    QUARANTINED = "quarantined"


class BudgetSource(StrEnum):
    """Where the budget comes from."""

    REQUEST = "request"
    CONVERSATION = "conversation"
    SETTINGS = "settings"


@dataclass(frozen=True)
class Moment:
    """A moment of a conversation: after a message, at a time, or after a run."""

    last_seq: int
    time: datetime | None = None
    run_id: str | None = None


@dataclass(frozen=True)
class AssembledItem:
    """One message, or one summary as an element in a user's message."""

    id: str
    kind: ContextItemType
    role: Role
    first_seq: int
    last_seq: int
    tokens: int
    text: str
    created_at: datetime
    author: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[PartRecord, ...] = ()
    # Not an item of the active context: a message found by the query, shown beside the summary that stands for it.
    is_recalled: bool = False
    # Its text had to be erased for good; a few words stand there instead.
    erased: bool = False
    # Of a message that is shown in part: these characters of it, headed by a line that says so.
    content_offset: int | None = None
    content_end: int | None = None
    content_total: int | None = None


@dataclass(frozen=True)
class ReceiptLine:
    """One decision; without an id, on all between its seqs without a line."""

    included: bool
    reason: AssemblyReason
    tokens: int
    # What the context held once this was decided.
    running_total: int
    first_seq: int
    last_seq: int
    id: str | None = None
    kind: ContextItemType | None = None
    messages: int = 0
    summaries: int = 0
    # Of a message that is shown in part, how many tokens more it is as a whole.
    tokens_left_out: int = 0


@dataclass(frozen=True)
class LeftOut:
    """How much of the active context did not fit, in items and tokens."""

    messages: int
    summaries: int
    tokens: int


@dataclass(frozen=True)
class AssembledContext:
    """What a model should be given, oldest first, and every decision on it.

    Without a format it is `items`. In one, it is `messages` as that API takes them, with `system` apart where the API
    has it apart, the ids that each message was made from in `sources`, and in `repairs` what had to be changed; `items`
    is empty then. Tokens are those of the items, whatever the format. `reserve` of the budget was left for the answer.
    `note` says what else there is to know.
    """

    conversation_id: int
    budget: int
    budget_source: BudgetSource
    total_tokens: int
    over_budget: bool
    items: tuple[AssembledItem, ...]
    left_out: LeftOut
    receipt: tuple[ReceiptLine, ...] = field(repr=False)
    query: str | None = None
    reserve: int = 0
    # The moment whose context this is; None for the present.
    as_of: Moment | None = None
    # The id of the receipt, if it was kept, and of older ones that made way for it.
    receipt_id: str | None = None
    receipts_gone: tuple[str, ...] = ()
    format: MessageFormat | None = None
    system: tuple[Mapping[str, Any], ...] = ()
    messages: tuple[Mapping[str, Any], ...] = ()
    sources: tuple[tuple[str, ...], ...] = ()
    repairs: tuple[Repair, ...] = ()
    note: str | None = None


@dataclass(frozen=True)
class KeptReceipt:
    """A kept receipt: ids, decisions and costs of one assembly, but no texts.

    The same context, assembled again in the same way, has the same receipt; `created_at` is when it was kept last.
    `query_hash` is the SHA-256 of the query.
    """

    receipt_id: str
    conversation_id: int
    created_at: datetime
    last_seq: int
    budget: int
    budget_source: BudgetSource
    reserve: int
    total_tokens: int
    over_budget: bool
    left_out: LeftOut
    lines: tuple[ReceiptLine, ...] = field(repr=False)
    query_hash: str | None = None
    as_of: Moment | None = None


@dataclass(frozen=True)
class ReceiptOutline:
    """A kept receipt without its decisions; `is_for_query`: it had a query."""

    receipt_id: str
    conversation_id: int
    created_at: datetime
    last_seq: int
    budget: int
    total_tokens: int
    over_budget: bool
    is_for_query: bool
    as_of: Moment | None = None


@dataclass(frozen=True)
class WentOut:
    """An item of an earlier context, and the summary that covers it now, if any."""

    line: ReceiptLine
    replaced_by: str | None = None


@dataclass(frozen=True)
class ChangedCost:
    """An item that is in both contexts and costs something else."""

    id: str
    first_seq: int
    last_seq: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True)
class ReceiptDifference:
    """What is another in the context of the `other` receipt, the later one as a rule."""

    receipt_id: str
    other: str
    conversation_id: int
    tokens_before: int
    tokens_after: int
    unchanged: int
    came_in: tuple[ReceiptLine, ...]
    went_out: tuple[WentOut, ...]
    changed_cost: tuple[ChangedCost, ...]


@dataclass(frozen=True)
class RecallSection:
    """What happened before, for a prompt, oldest first.

    `text` costs `tokens`, at most `limit`; it is empty if there is nothing to recall, or no room to say it. In it are
    `summary_ids` of the conversation's own past; `left_out_ids` had no room. Of earlier sessions of the `project`,
    there are the session, arc and epoch summaries `past_ids`, of `past_cut_ids` only the first sentences;
    `past_left_out_ids` had no room.
    """

    conversation_id: int | None
    text: str
    tokens: int
    limit: int
    budget: int
    budget_source: BudgetSource
    share: float
    summary_ids: tuple[str, ...]
    left_out_ids: tuple[str, ...]
    project: str | None = None
    past_ids: tuple[str, ...] = ()
    past_cut_ids: tuple[str, ...] = ()
    past_left_out_ids: tuple[str, ...] = ()
