"""What lies below a summary, in order, without its text: read in windows, so that a page costs the same anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from conversations.models import Summary
from conversations.reading import rows
from retrieval.opening.cursors import Key

# How many seqs a window spans at first, for each message that is wanted, and how it grows while that is not enough.
_SEQS_A_MESSAGE, _WIDENING = 4, 4
_UNLIMITED = 2**30

# What follows the first of `reach`, for an outline below a summary and for one of a range alike.
# `reach` are the summaries that lie in the window, with how far below the root they are; those above the last level are
# opened. A message's number grows with its seq, so a summary's links can be read from where the window begins.
BELOW = """
        UNION
        SELECT s.summary_id, reach.level + 1
        FROM reach
        JOIN summary_parents p ON p.summary_id = reach.summary_id
        JOIN summaries s ON s.summary_id = p.parent_summary_id
        WHERE reach.level < %(depth)s AND s.first_seq <= %(upto)s AND s.last_seq >= %(from)s
    ), nodes AS (
        SELECT summary_id, min(level) AS level FROM reach GROUP BY summary_id
    ), edge AS (
        SELECT (SELECT message_id FROM messages WHERE conversation_id = %(conversation_id)s AND seq >= %(from)s
                ORDER BY seq LIMIT 1) AS message_id
    ), linked AS (
        SELECT DISTINCT ON (m.seq) m.message_id, m.seq, m.token_count, nodes.level + 1 AS level, nodes.summary_id AS of
        FROM nodes, edge,
             LATERAL (
                 SELECT l.message_id FROM summary_messages l
                 WHERE %(include_messages)s AND l.summary_id = nodes.summary_id AND l.message_id >= edge.message_id
                 ORDER BY l.message_id LIMIT %(most)s
             ) AS linked
             JOIN messages m ON m.message_id = linked.message_id
        WHERE nodes.level < %(depth)s
          AND m.conversation_id = %(conversation_id)s AND m.seq BETWEEN %(from)s AND %(upto)s
        ORDER BY m.seq, nodes.level
        LIMIT %(most)s
    )
"""
_WINDOW = f"""
    WITH RECURSIVE reach(summary_id, level) AS (
        SELECT %(root)s, 0
        {BELOW}
    SELECT 'summary', s.summary_id, s.first_seq, s.depth, s.token_count, nodes.level,
           (SELECT p.summary_id FROM summary_parents p JOIN nodes n ON n.summary_id = p.summary_id
            WHERE p.parent_summary_id = s.summary_id AND n.level = nodes.level - 1 ORDER BY p.summary_id LIMIT 1)
    FROM nodes JOIN summaries s ON s.summary_id = nodes.summary_id
    WHERE nodes.level > 0 AND s.first_seq BETWEEN %(from)s AND %(upto)s
    UNION ALL
    SELECT 'message', message_id::text, seq, 0, token_count, level, of FROM linked
"""


class Entry(NamedTuple):
    """One item below a summary: its place, what its text costs, and whose source it is."""

    # The key comes first: entries are in order as they are.
    key: Key
    id: int | str
    tokens: int
    level: int
    of: str

    @property
    def is_message(self) -> bool:
        return isinstance(self.id, int)


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
    window = _UNLIMITED if outline.is_shallow else _SEQS_A_MESSAGE * at_once
    begin = max(start.seq, outline.first_seq)
    while begin <= outline.last_seq:
        upto = min(outline.last_seq, begin + window)
        entries = outline.window(begin, upto, at_once)
        messages = [entry for entry in entries if entry.is_message]
        if len(messages) >= at_once:
            # There may be more behind the last message, so nothing that comes after it is told yet.
            upto = min(upto, messages[-1].key.seq)
        yield from (entry for entry in entries if start <= entry.key and entry.key.seq <= upto)
        begin, window = upto + 1, window * _WIDENING


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
                _WINDOW,
                {
                    "root": self.root.summary_id,
                    "conversation_id": self.root.conversation_id,
                    "depth": levels(self.depth),
                    "include_messages": self.include_messages,
                    "from": begin,
                    "upto": upto,
                    "most": most,
                },
            )
        )


def levels(depth: int) -> int:
    """The depth as a number that every level is compared with."""
    return _UNLIMITED if depth < 0 else depth


def as_entries(found: Iterable[tuple[Any, ...]]) -> list[Entry]:
    """Rows of a window as entries, in order."""
    told = []
    for kind, item_id, seq, depth, tokens, level, of in found:
        if kind == "message":
            told.append(Entry(Key.of_message(seq), int(item_id), tokens, level, of))
        else:
            told.append(Entry(Key.of_summary(seq, depth, item_id), item_id, tokens, level, of))
    return sorted(told)
