"""Records of assemble mode: a request's entries, cuts, and shortened requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lcmsite.gateway.surfaces import Surface


class Kind(StrEnum):
    """What an entry of a request is, as far as it matters for cutting."""

    SYSTEM = "system"
    QUESTION = "question"
    MODEL = "model"
    RESULT = "result"


class Untouched(StrEnum):
    """Why a request is forwarded unchanged."""

    FITS = "fits"
    # Part of the history is stored by the vendor, and not in the request.
    DELTA = "delta"
    # The vendor or the client compacts already; doing both would conflict.
    VENDOR_COMPACTION = "vendor_compaction"
    UNREADABLE = "unreadable"
    # Some entries are not stored, so the model could not look them up.
    NOT_STORED = "not_stored"


@dataclass(frozen=True)
class Entry:
    """One message or item of a request, with its JSON as the client sent it."""

    text: str = field(repr=False)
    value: Mapping[str, Any] = field(repr=False)
    kind: Kind
    tokens: int
    # The ids of the tool calls that it makes, and of those that it answers.
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    # The answered calls that are of LCM's tools: no stored message has their results.
    looked_up: tuple[str, ...] = ()
    # The seq of the last message that it was stored as.
    seq: int | None = None


@dataclass(frozen=True)
class WindowRequest:
    """A parsed request that may be shortened."""

    surface: Surface
    body: str = field(repr=False)
    # Where the list of entries is in the body.
    start: int
    end: int
    entries: tuple[Entry, ...]
    # The tokens of all but the entries: system, tools, schema of the answer.
    head_tokens: int
    # How many cache breakpoints are outside of the entries.
    breakpoints: int = 0
    # The most tokens that the answer may have, if the request sets a limit.
    answer_tokens: int | None = None
    # Whether the vendor demands all earlier thoughts, even if the history before them changed.
    needs_thoughts: bool = False

    @property
    def tokens(self) -> int:
        return self.head_tokens + sum(entry.tokens for entry in self.entries)


@dataclass(frozen=True)
class Cut:
    """Which entries of a request are kept, by seq; later requests reuse it.

    Kept are the entries up to `opening_seq`, those from `first_seq` on, and between them `pinned_seqs`: the question of
    a turn that is cut in the middle. Without `first_seq`, all are kept. `made_at_seq` was the newest when the cut was
    made: up to there, tool results over `most_result_tokens` are shortened, and signed thoughts are left out. System
    messages between the model's first answer and the tail are kept up to `most_system_tokens`, the newest first, and
    those of the pinned question.
    """

    opening_seq: int = 0
    pinned_seqs: tuple[int, ...] = ()
    first_seq: int | None = None
    most_result_tokens: int | None = None
    # None in cuts that were stored before this limit: all are kept.
    most_system_tokens: int | None = None
    made_at_seq: int = 0


@dataclass(frozen=True)
class ShownSummary:
    """A summary as a model sees it."""

    summary_id: str
    first_seq: int
    last_seq: int
    text: str = field(repr=False)


@dataclass(frozen=True)
class StoredCut:
    """A stored cut, for later requests, with the summaries that it shows."""

    cut: Cut
    window: int
    summary_ids: tuple[str, ...] = ()
    summary_tokens: int = 0
    # The seq of the newest message that it leaves out.
    last_seq: int = 0


@dataclass(frozen=True)
class Shortened:
    """A shorter request."""

    body: bytes = field(repr=False)
    tokens: int
    # How many of the entries were left out, and how many results were shortened.
    left_out: int
    results_shortened: int


@dataclass(frozen=True)
class Assembled:
    """The result for a request: `shorter`, or the reason why it is `untouched`."""

    window: int
    tokens_in: int = 0
    untouched: Untouched | None = None
    shorter: Shortened | None = None
    summary_ids: tuple[str, ...] = ()
    # Whether it still exceeds the window, because what must be kept does.
    is_over: bool = False
    # Whether the cut is new, so that the prefix of the request changes.
    is_new_cut: bool = False
    # The tokens reserved for lookups; 0 if LCM's tools are not offered.
    lookup_room: int = 0

    @property
    def tokens_out(self) -> int:
        return self.tokens_in if self.shorter is None else self.shorter.tokens
