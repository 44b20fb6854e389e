"""Escape texts with highlighted words, and split diffs into lines."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# Maximum number of words in one regular expression.
MOST_WORDS = 400
# A longer text is shown without highlights: to find them would take too long.
MOST_CHARACTERS = 400_000


@dataclass(frozen=True)
class Line:
    """One line of a diff: added, removed, a heading, or unchanged."""

    text: str
    tone: str


def marked_spans(text: str, spans: Sequence[tuple[int, int]]) -> SafeString:
    """The escaped text with these spans highlighted; overlapping ones are skipped."""
    pieces, end = [], 0
    for start, stop in sorted(spans):
        if start < end or stop > len(text):
            continue
        pieces += [escape(text[end:start]), "<mark>", escape(text[start:stop]), "</mark>"]
        end = stop
    pieces.append(escape(text[end:]))
    return mark_safe("".join(pieces))


def marked_words(text: str, words: Collection[str]) -> SafeString:
    """The escaped text with these words highlighted if they are whole words."""
    sought = sorted((word for word in words if word), key=lambda word: (-len(word), word))[:MOST_WORDS]
    if not sought or len(text) > MOST_CHARACTERS:
        return escape(text)
    whole = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sought))})(?!\w)")
    return marked_spans(text, [match.span() for match in whole.finditer(text)])


def diff_lines(text: str) -> Iterator[Line]:
    """The lines of a diff, each with its tone."""
    for line in text.split("\n"):
        tone = ""
        if line.startswith(("+++", "---", "diff ", "index ", "@@")):
            tone = "heading"
        elif line.startswith("+"):
            tone = "in"
        elif line.startswith("-"):
            tone = "out"
        yield Line(text=line, tone=tone)
