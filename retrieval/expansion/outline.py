"""List the entries of an expansion in order, by windows of seqs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from conversations.models import Summary
from conversations.sql import load, rows
from conversations.store.paths import Path
from retrieval.describing.ranges import Range

# The maximum number of rows read at once; a page may end before the last, because entries do not count parts' tokens.
READ_AT_ONCE = 1000
# One statement lists as many messages as a page holds with _TOKENS_A_MESSAGE tokens each, at least _FEWEST_AT_ONCE.
_FEWEST_AT_ONCE, _TOKENS_A_MESSAGE = 64, 128
# The next window is this many times as wide if the one before had few entries.
_WIDENING = 4
UNLIMITED = 2**30
_SQL = load("retrieval/expand.sql")


def below_roots(roots: str, *, own_links: str = "", raw: str = "", messages: str = "linked") -> str:
    """The statement that reads a window of the entries below these roots."""
    return _SQL["below"].format(roots=roots, own_links=own_links, raw=raw, messages=messages)


_BELOW_SUMMARY = below_roots(_SQL["root_summary"])
_BELOW_RANGE = below_roots(_SQL["roots_of_range"], raw=_SQL["raw_of_range"], messages="near")


class Key(NamedTuple):
    """The sort key of an item in an expansion.

    Items are sorted by their first seq. At the same seq, the deepest summary comes first and the message last: the rank
    of a summary is its negative depth, the rank of a message is 1. A message has an empty `summary_id`.
    """

    seq: int
    rank: int
    summary_id: str = ""


class Entry(NamedTuple):
    """One item below a summary; `of` is the item whose source it is.

    The fields are the columns of the statement. The sort key comes first, so entries can be sorted as tuples.
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
    """The entries of an expansion: a range of seqs, and the statement for a window."""

    # Identifies the outline, also in cursors.
    name: str
    first_seq: int
    last_seq: int
    # Whether the statement is cheap for every window, because it visits no more messages than it returns.
    is_shallow: bool
    statement: str
    values: Mapping[str, Any]

    def window(self, begin: int, upto: int, most: int) -> list[Entry]:
        """Read the summaries, and the first `most` messages, that begin in a window."""
        values = {**self.values, "first": self.first_seq, "from": begin, "upto": upto, "most": most}
        return sorted(Entry(*row) for row in rows(self.statement, values))

    def entries(self, *, start: Key, cap: int) -> Iterator[Entry]:
        """Yield the entries from `start` on, in order, reading lazily.

        One statement reads about as many messages as a page of `cap` tokens has.
        """
        at_once = max(_FEWEST_AT_ONCE, cap // _TOKENS_A_MESSAGE)
        window = UNLIMITED
        if not self.is_shallow:
            # A statement visits all messages of its window, so the first window is narrow.
            window = at_once = min(at_once, READ_AT_ONCE)
        begin = max(start.seq, self.first_seq)
        while begin <= self.last_seq:
            upto = min(self.last_seq, begin + window - 1)
            entries = self.window(begin, upto, at_once)
            messages = [entry.seq for entry in entries if entry.message_id is not None]
            if len(messages) >= at_once:
                # The window may have more messages, so entries after the last message are left to the next window.
                upto = min(upto, messages[-1])
            elif len(messages) < at_once // 2:
                window *= _WIDENING
            yield from (
                entry for entry in entries if entry.seq <= upto and (entry.seq > start.seq or start <= entry.key)
            )
            begin = upto + 1

    def last_entry(self) -> Entry | None:
        """Find the last entry; None if there are no entries."""
        upto, width = self.last_seq, 1
        while upto >= self.first_seq:
            begin = max(self.first_seq, upto - width + 1)
            entries = self.window(begin, upto, width)
            if entries:
                return entries[-1]
            upto, width = begin - 1, width * _WIDENING
        return None


def below(root: Summary, *, depth: int, include_messages: bool) -> Outline:
    """The outline of `depth` levels (-1: all) below a summary."""
    values = {
        "of": root.summary_id,
        "conversation_id": root.conversation_id,
        "depth": _levels(depth),
        "include_messages": include_messages,
    }
    return Outline(root.summary_id, root.first_seq, root.last_seq, depth == 1, _BELOW_SUMMARY, values)


def within(
    stretch: Range, roots: Sequence[str], path: Path, *, as_of: datetime, depth: int, include_messages: bool
) -> Outline:
    """The outline of a range's context at a moment, `depth` levels down (-1: all)."""
    shown = hashlib.sha256(" ".join(roots).encode()).hexdigest()[:16]
    values = {
        **path.values,
        "roots": list(roots),
        "as_of": as_of,
        "depth": _levels(depth),
        "include_messages": include_messages,
    }
    return _of_range(stretch, shown, _BELOW_RANGE, values, is_shallow=depth == 1)


def messages_within(stretch: Range) -> Outline:
    """The outline of all messages of a range, also of summarized messages."""
    return _of_range(stretch, "messages", _SQL["messages_of_range"], {}, is_shallow=True)


def _of_range(stretch: Range, name: str, statement: str, values: Mapping[str, Any], *, is_shallow: bool) -> Outline:
    number = stretch.conversation_id
    values = {**values, "conversation_id": number, "of": f"conv_{number}"}
    return Outline(f"{number} {name}", stretch.from_seq, stretch.last_seq, is_shallow, statement, values)


def _levels(depth: int) -> int:
    """The depth as a number that levels can be compared with: -1 becomes a large one."""
    return UNLIMITED if depth < 0 else depth
