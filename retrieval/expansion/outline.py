"""List what can be opened, in order, in windows of seqs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from conversations.models import Summary
from conversations.sql import load, rows
from retrieval.describing.ranges import Range

# How a window grows where it holds much less than is wanted.
_WIDENING = 4
UNLIMITED = 2**30
_SQL = load("retrieval/expand.sql")


class Key(NamedTuple):
    """The place of an item in the order of an expansion.

    By seq; of summaries that begin there, the widest first. A summary's rank is its depth, below zero; a message's is
    1, and it has no summary's id.
    """

    seq: int
    rank: int
    summary_id: str = ""


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


@dataclass(frozen=True)
class Outline:
    """What can be opened: its seqs, and the statement that lists a window."""

    # Tells it from any other outline.
    name: str
    first_seq: int
    last_seq: int
    # Whether it is a handful of summaries, or messages of which no more are read than are wanted.
    is_shallow: bool
    statement: str
    values: Mapping[str, Any]

    def window(self, begin: int, upto: int, most: int) -> list[Entry]:
        """Every summary and the first `most` messages that begin in the window."""
        values = {**self.values, "from": begin, "upto": upto, "most": most}
        return sorted(Entry(*row) for row in rows(self.statement, values, binary=True))

    def entries(self, *, start: Key, at_once: int) -> Iterator[Entry]:
        """Everything there is to open from `start` on, in order, read as it is taken.

        `at_once`: how many messages are worth looking up in one go.
        """
        # No wider than what is wanted, where each message is below: all that lies in a window is gone through for it.
        window = UNLIMITED if self.is_shallow else at_once
        begin = max(start.seq, self.first_seq)
        while begin <= self.last_seq:
            upto = min(self.last_seq, begin + window - 1)
            entries = self.window(begin, upto, at_once)
            messages = [entry.seq for entry in entries if entry.message_id is not None]
            if len(messages) >= at_once:
                # There may be more behind the last message, so nothing that comes after it is given yet.
                upto = min(upto, messages[-1])
            elif len(messages) < at_once // 2:
                window *= _WIDENING
            yield from (
                entry for entry in entries if entry.seq <= upto and (entry.seq > start.seq or start <= entry.key)
            )
            begin = upto + 1

    def last_entry(self) -> Entry | None:
        """The entry that comes last; None if there is nothing to open."""
        upto, width = self.last_seq, 1
        while upto >= self.first_seq:
            begin = max(self.first_seq, upto - width + 1)
            entries = self.window(begin, upto, width)
            if entries:
                return entries[-1]
            upto, width = begin - 1, width * _WIDENING
        return None


def below(root: Summary, *, depth: int, include_messages: bool) -> Outline:
    """Everything within `depth` levels (-1: all) below a summary."""
    values = {
        "root": root.summary_id,
        "conversation_id": root.conversation_id,
        "depth": _levels(depth),
        "include_messages": include_messages,
    }
    return Outline(root.summary_id, root.first_seq, root.last_seq, depth == 1, _SQL["below_summary"], values)


def within(stretch: Range, roots: Sequence[str], *, as_of: datetime, depth: int, include_messages: bool) -> Outline:
    """The context of a range as of a moment, with `depth` levels below (-1: all)."""
    shown = hashlib.sha256(" ".join(roots).encode()).hexdigest()[:16]
    values = {
        "roots": list(roots),
        "as_of": as_of,
        "depth": _levels(depth),
        "include_messages": include_messages,
        "first": stretch.from_seq,
    }
    return _of_range(stretch, shown, _SQL["below_range"], values, is_shallow=depth == 1)


def messages_within(stretch: Range) -> Outline:
    """The messages of a range and nothing else, whatever has become of them."""
    return _of_range(stretch, "messages", _SQL["messages_of_range"], {}, is_shallow=True)


def _of_range(stretch: Range, name: str, statement: str, values: Mapping[str, Any], *, is_shallow: bool) -> Outline:
    number = stretch.conversation_id
    values = {**values, "conversation_id": number, "of": f"conv_{number}"}
    return Outline(f"{number} {name}", stretch.from_seq, stretch.last_seq, is_shallow, statement, values)


def _levels(depth: int) -> int:
    """The depth as a number that every level is compared with."""
    return UNLIMITED if depth < 0 else depth
