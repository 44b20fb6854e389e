"""The records of assembly: what a model gets to see, and why it is that and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from conversations.types import ContextItemType, PartRecord, Role


class AssemblyReason(StrEnum):
    """Why something is in an assembled context, or is not."""

    SYSTEM = "system"
    FRESH_TAIL = "fresh_tail"
    PINNED = "pinned"
    RELEVANT = "relevant"
    FITS = "fits"
    BUDGET = "budget"


class BudgetSource(StrEnum):
    """Who said how many tokens there are."""

    REQUEST = "request"
    CONVERSATION = "conversation"
    SETTINGS = "settings"


@dataclass(frozen=True)
class AssembledItem:
    """One message or summary as the model gets it; a summary comes as an element, in the words of a user."""

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


@dataclass(frozen=True)
class ReceiptLine:
    """One decision. A line without an id speaks of all that lies between its seqs and has no line of its own."""

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


@dataclass(frozen=True)
class LeftOut:
    """How much of the active context did not fit: items of each kind, and their tokens."""

    messages: int
    summaries: int
    tokens: int


@dataclass(frozen=True)
class AssembledContext:
    """What a model should be given, oldest first, and the receipt: every decision in the order it was made."""

    conversation_id: int
    budget: int
    budget_source: BudgetSource
    total_tokens: int
    over_budget: bool
    items: tuple[AssembledItem, ...]
    left_out: LeftOut
    receipt: tuple[ReceiptLine, ...] = field(repr=False)
    query: str | None = None
