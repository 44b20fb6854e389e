"""The records of assembly: contexts, receipts and recall sections."""

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
    """What sets the budget."""

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
    """A message, or a summary rendered as an element in a user's message."""

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
    # Not an item of the active context: a message found by the query, in addition to the summary that covers it.
    is_recalled: bool = False
    # Whether the text was permanently erased; `text` is a placeholder then.
    erased: bool = False
    # Of a message that is shown in part: which of its characters, and how many it has.
    content_offset: int | None = None
    content_end: int | None = None
    content_total: int | None = None


@dataclass(frozen=True)
class ReceiptLine:
    """A decision on one item; without an id, on all unlisted items between its seqs."""

    included: bool
    reason: AssemblyReason
    tokens: int
    # The tokens of the context after this decision.
    running_total: int
    first_seq: int
    last_seq: int
    id: str | None = None
    kind: ContextItemType | None = None
    messages: int = 0
    summaries: int = 0
    # Of a message that is shown in part: the number of tokens left out.
    tokens_left_out: int = 0


@dataclass(frozen=True)
class LeftOut:
    """How much of the active context did not fit, in items and tokens."""

    messages: int
    summaries: int
    tokens: int


@dataclass(frozen=True)
class AssembledContext:
    """A context to send to a model, oldest first, and every decision about it.

    Without a `format`, the context is in `items`. With a format, `items` is empty and the context is in `messages`,
    and in `system` if the API has a separate field for it. `sources` lists the item ids of each message. `repairs`
    lists the changes that the API made necessary. Tokens are counted from the items in every format. `reserve` tokens
    of the budget are left for the answer. `note` explains a past context.
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
    # The moment whose context this is; absent for the present.
    as_of: Moment | None = None
    # The id of the receipt, if it was stored, and of older ones that were deleted for it.
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

    If the same context is assembled again in the same way, it has the same receipt, and `created_at` is the last time.
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
    """A kept receipt without its lines; `is_for_query`: the assembly had a query."""

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
    """An item only in the first context; `replaced_by`: the summary that covers it."""

    line: ReceiptLine
    replaced_by: str | None = None


@dataclass(frozen=True)
class ChangedCost:
    """An item of both contexts with different numbers of tokens."""

    id: str
    first_seq: int
    last_seq: int
    tokens_before: int
    tokens_after: int


@dataclass(frozen=True)
class ReceiptDifference:
    """How the context of the `other` receipt, usually the later one, differs."""

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
    """A text for a prompt about what happened before, oldest first.

    `text` has `tokens` tokens, at most `limit`. It is empty if there is nothing to recall, or if nothing fits. From the
    conversation's own past it contains the summaries `summary_ids`; `left_out_ids` did not fit. From earlier sessions
    of the `project` it contains the session, arc and epoch summaries `past_ids`, and only the first sentences of
    `past_cut_ids`; `past_left_out_ids` did not fit.
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
