"""The records of assemble mode: a request in entries, a cut, and what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from lcmsite.gateway.surfaces import Surface


class Kind(StrEnum):
    """What an entry of a request is, as far as a cut needs to know it."""

    SYSTEM = "system"
    QUESTION = "question"
    MODEL = "model"
    RESULT = "result"


class Untouched(StrEnum):
    """Why a request goes through as it came."""

    FITS = "fits"
    # Parts of the conversation are with the vendor only: nothing here may be moved.
    DELTA = "delta"
    # The vendor or the client compacts; two would work against each other.
    VENDOR_COMPACTION = "vendor_compaction"
    UNREADABLE = "unreadable"
    # Not stored, so nothing that was left out could be found again.
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
    # Of the answered calls, those of LCM's tools: no message has what these gave.
    looked_up: tuple[str, ...] = ()
    # The seq of the last message that it was stored as.
    seq: int | None = None


@dataclass(frozen=True)
class WindowRequest:
    """A request that may be shortened."""

    surface: Surface
    body: str = field(repr=False)
    # Where the list of entries is in the body.
    start: int
    end: int
    entries: tuple[Entry, ...]
    # What all but the entries costs: system, tools, schema of the answer.
    head_tokens: int
    # How many cache breakpoints stand outside of the entries.
    breakpoints: int = 0
    # How much of the window the answer may need, as far as the request says.
    answer_tokens: int | None = None
    # Whether the model must get its thoughts back whatever happened before them.
    needs_thoughts: bool = False

    @property
    def tokens(self) -> int:
        return self.head_tokens + sum(entry.tokens for entry in self.entries)


@dataclass(frozen=True)
class Cut:
    """Which entries of a request stay, by seqs: it holds for later ones, too.

    Entries up to `opening_seq` stay; then come those from `first_seq` on, before them the question that they belong to.
    Without `first_seq`, nothing is left out. What was there when the cut was made ends at `newest_seq`: there, results
    of tools over `most_result_tokens` are shortened, and the model's thoughts are from before the cut.
    """

    opening_seq: int = 0
    pinned_seqs: tuple[int, ...] = ()
    first_seq: int | None = None
    most_result_tokens: int | None = None
    newest_seq: int = 0


@dataclass(frozen=True)
class ShownSummary:
    """A summary as a model sees it."""

    summary_id: str
    first_seq: int
    last_seq: int
    text: str = field(repr=False)


@dataclass(frozen=True)
class KeptCut:
    """A cut as it is kept for the next requests, with the summaries behind it."""

    cut: Cut
    window: int
    summary_ids: tuple[str, ...] = ()
    summary_tokens: int = 0
    # The newest message that it leaves out.
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
    """What became of a request: `shorter`, or why it goes through as it came."""

    window: int
    tokens_in: int = 0
    untouched: Untouched | None = None
    shorter: Shortened | None = None
    summary_ids: tuple[str, ...] = ()
    # Whether it is over the window all the same, as what must stay is.
    is_over: bool = False
    # Whether the cut is a new one, so that the prefix has changed.
    is_new_cut: bool = False
    # The tokens that were kept free for lookups of the model; 0 where it has not got LCM's tools.
    lookup_room: int = 0

    @property
    def tokens_out(self) -> int:
        return self.tokens_in if self.shorter is None else self.shorter.tokens
