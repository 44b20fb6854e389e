"""Texts with the places marked that somebody looks for. All in them is escaped: they are other people's words."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

# As many words are sought at once as an expression bears.
MOST_WORDS = 400
# A longer text is shown as it is: to mark it would take longer than anybody waits.
MOST_CHARACTERS = 400_000


def marked_spans(text: str, spans: Sequence[tuple[int, int]]) -> SafeString:
    """The text with these from-to positions marked; they do not overlap."""
    pieces, end = [], 0
    for start, stop in sorted(spans):
        if start < end or stop > len(text):
            continue
        pieces += [escape(text[end:start]), "<mark>", escape(text[start:stop]), "</mark>"]
        end = stop
    pieces.append(escape(text[end:]))
    return mark_safe("".join(pieces))


def marked_words(text: str, words: Collection[str]) -> SafeString:
    """The text with each of these words marked where it stands as a whole."""
    sought = sorted((word for word in words if word), key=lambda word: (-len(word), word))[:MOST_WORDS]
    if not sought or len(text) > MOST_CHARACTERS:
        return escape(text)
    whole = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sought))})(?!\w)")
    return marked_spans(text, [match.span() for match in whole.finditer(text)])
