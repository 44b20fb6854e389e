"""Render summaries for a recall, in full or cut to their first sentences; no I/O."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from compaction.history.types import HistoryKind
from compaction.rendering import minute_of
from compaction.summarizing.extractive.sentences import sentences
from retrieval.history.types import TimelineEntry

# The attribute `cut` of an element whose text is cut: it says how to read the whole text.
CUT = "lcm_describe has the whole text"
# The tokens of the blank line between two elements.
BREAK_TOKENS = 2


@dataclass(frozen=True)
class Excerpt:
    """A timeline entry with its text, or with the first `length` characters of it."""

    entry: TimelineEntry
    length: int | None = None

    @property
    def id(self) -> str:
        return self.entry.id or ""

    @property
    def is_cut(self) -> bool:
        return self.length is not None

    def render(self) -> str:
        """Render the summary as an XML element, with escaped text and attributes."""
        entry = self.entry
        attributes = {"id": self.id}
        if entry.kind is HistoryKind.SESSION:
            attributes |= {"conversation": f"conv_{entry.conversation_id}", "session": entry.session_id or ""}
            attributes |= {"messages": str(entry.message_count)}
        else:
            attributes |= {"sessions": str(entry.sessions)}
        if entry.behind:
            attributes |= {"newer_messages": str(entry.behind)}
        attributes |= {"from": minute_of(entry.earliest_at), "to": minute_of(entry.latest_at), "trust": "untrusted"}
        if self.is_cut:
            attributes |= {"cut": CUT}
        written = " ".join(f"{name}={quoteattr(value)}" for name, value in attributes.items())
        return f"<{entry.kind} {written}>\n{escape((entry.content or '')[: self.length])}\n</{entry.kind}>"

    def cost(self, count: Callable[[str], int]) -> int:
        return count(self.render()) + BREAK_TOKENS


def excerpt(entry: TimelineEntry, *, room: int, count: Callable[[str], int]) -> tuple[Excerpt, int]:
    """Return the entry and its tokens: whole, or cut after the last fitting sentence.

    At least the first sentence is kept, even if it has more than `room` tokens.
    """
    whole = Excerpt(entry)
    cost = whole.cost(count)
    content = entry.content or ""
    ends = [end for end in _sentence_ends(content) if end < len(content.rstrip())]
    if cost <= room or not ends:
        return whole, cost
    fitting = bisect_right(ends, room, lo=1, key=lambda end: Excerpt(entry, end).cost(count))
    shorter = Excerpt(entry, ends[fitting - 1])
    return shorter, shorter.cost(count)


def _sentence_ends(text: str) -> Iterator[int]:
    """Yield the offsets at which sentences and lines end, without trailing spaces."""
    start = 0
    for line in text.split("\n"):
        place = start
        for sentence in sentences(line):
            if sentence.strip():
                yield place + len(sentence.rstrip())
            place += len(sentence)
        start += len(line) + 1
