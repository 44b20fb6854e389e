"""List what lies below a summary, in order, in windows of seqs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from conversations.models import Summary
from conversations.sql import load, rows
from retrieval.expansion.expansion_cursors import Key

# How a window grows where it holds much less than is wanted.
_WIDENING = 4
_UNLIMITED = 2**30
_SQL = load("retrieval/expand.sql")


class Entry(NamedTuple):
    """One item below a summary: its place, its tokens, and whose source it is.

    As a window's row has it; its place comes first, so that entries are in order as they are.
    """

    seq: int
    rank: int
    # Empty for a message.
    summary_id: str
    message_id: int | None
    tokens: int
    level: int
    of: str

    @property
    def key(self) -> Key:
        return Key(self.seq, self.rank, self.summary_id)


class Outline(Protocol):
    """What can be opened: the seqs it spans, and what lies in a window of them."""

    @property
    def first_seq(self) -> int: ...

    @property
    def last_seq(self) -> int: ...

    @property
    def is_shallow(self) -> bool:
        """Whether it is a handful of summaries, or messages of which no more are read than asked for."""
        ...

    def window(self, begin: int, upto: int, most: int) -> list[Entry]:
        """The entries that begin in the window, in order: every summary, and the first `most` messages."""
        ...


def entries_of(outline: Outline, *, start: Key, at_once: int) -> Iterator[Entry]:
    """Everything there is to open from `start` on, in order; read as it is asked for.

    `at_once`: how many messages are worth looking up in one go.
    """
    # No wider than what is wanted, where each message is below: all that lies in a window is gone through for it.
    window = _UNLIMITED if outline.is_shallow else at_once
    begin = max(start.seq, outline.first_seq)
    while begin <= outline.last_seq:
        upto = min(outline.last_seq, begin + window - 1)
        entries = outline.window(begin, upto, at_once)
        messages = [entry.seq for entry in entries if entry.message_id is not None]
        if len(messages) >= at_once:
            # There may be more behind the last message, so nothing that comes after it is told yet.
            upto = min(upto, messages[-1])
        elif len(messages) < at_once // 2:
            window *= _WIDENING
        yield from (entry for entry in entries if entry.seq <= upto and (entry.seq > start.seq or start <= entry.key))
        begin = upto + 1


def last_entry(outline: Outline) -> Entry | None:
    """The entry that comes last; None if there is nothing to open."""
    upto, width = outline.last_seq, 1
    while upto >= outline.first_seq:
        begin = max(outline.first_seq, upto - width + 1)
        entries = outline.window(begin, upto, width)
        if entries:
            return entries[-1]
        upto, width = begin - 1, width * _WIDENING
    return None


@dataclass(frozen=True)
class Below:
    """Everything within `depth` levels (-1: all) below a summary."""

    root: Summary
    depth: int
    include_messages: bool

    @property
    def first_seq(self) -> int:
        return self.root.first_seq

    @property
    def last_seq(self) -> int:
        return self.root.last_seq

    @property
    def is_shallow(self) -> bool:
        return self.depth == 1

    def window(self, begin: int, upto: int, most: int) -> list[Entry]:
        return as_entries(
            rows(
                _SQL["below_summary"],
                {
                    "root": self.root.summary_id,
                    "conversation_id": self.root.conversation_id,
                    "depth": levels(self.depth),
                    "include_messages": self.include_messages,
                    "from": begin,
                    "upto": upto,
                    "most": most,
                },
                binary=True,
            )
        )


def levels(depth: int) -> int:
    """The depth as a number that every level is compared with."""
    return _UNLIMITED if depth < 0 else depth


def as_entries(found: Iterable[tuple[Any, ...]]) -> list[Entry]:
    """Rows of a window as entries, in order."""
    return sorted(map(Entry._make, found))
