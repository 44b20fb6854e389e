"""Render summaries for a model, and messages for a summarizer. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Protocol
from xml.sax.saxutils import escape, quoteattr

from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS, TokenEstimator

# Base64 of this length is an image or an archive: no summary repeats it.
_BASE64 = re.compile(r"[A-Za-z0-9+/]{400,}={0,2}")
# Base64 in lines, as in mails and certificates, or with the line breaks that JSON writes.
_BREAK = r"(?:\r?\n[ \t]*|\\r\\n|\\n)"
_BASE64_LINES = re.compile(rf"(?:[A-Za-z0-9+/]{{60,76}}{_BREAK}){{5,}}[A-Za-z0-9+/]{{0,76}}={{0,2}}")
# Most messages have no word of this length, and the patterns above need not be tried.
_SHORTEST_LINE = 60
_SHORTEST_BASE64 = 5 * _SHORTEST_LINE
# Anchored to the start of a word, so that many words just below the length stay cheap.
_LONG_WORD = re.compile(rf"(?<!\S)\S{{{_SHORTEST_LINE}}}")

# What replaces a text that was erased for good.
ERASED = "[erased]"
# What replaces a text that is quarantined, for readers.
QUARANTINED = "[quarantined]"
# What replaces a quarantined text in the source of a summary.
WITHHELD = "[withheld]"

# In this id no tokenizer merges two characters into one token, so no other id costs more.
_COSTLIEST_ID = "sum_" + 8 * "1a"


class Shown(Protocol):
    """The fields of a summary that a model sees, of a new record or a stored row."""

    @property
    def summary_id(self) -> str: ...
    @property
    def kind(self) -> str: ...
    @property
    def depth(self) -> int: ...
    @property
    def first_seq(self) -> int: ...
    @property
    def last_seq(self) -> int: ...
    @property
    def earliest_at(self) -> datetime: ...
    @property
    def latest_at(self) -> datetime: ...
    @property
    def content(self) -> str: ...


def context_cost_of(tokens: TokenEstimator) -> Callable[[Shown], int]:
    """Return a function that counts a summary's tokens in a context, with framing.

    The id that costs most is counted: the tokens of a random id vary, but the token counts of a plan must not.
    """
    return lambda summary: tokens.count(_element(summary, _COSTLIEST_ID)) + MESSAGE_OVERHEAD_TOKENS


def render_summary(summary: Shown) -> str:
    """Render the summary as an XML element with its id, depth, range and times.

    The text is escaped: no content can end the element or look like another element.
    """
    return _element(summary, summary.summary_id)


def _element(summary: Shown, summary_id: str) -> str:
    # The values not escaped are numbers, times and LCM's own words.
    erased = getattr(summary, "erased_by_id", None) is not None
    return (
        f'<summary id={quoteattr(summary_id)} kind="{summary.kind}" depth="{summary.depth}"'
        f' messages="{summary.first_seq}-{summary.last_seq}"'
        f' from="{minute_of(summary.earliest_at)}" to="{minute_of(summary.latest_at)}" trust="untrusted">\n'
        f"{ERASED if erased else escape(summary.content)}\n</summary>"
    )


def minute_of(moment: datetime) -> str:
    """Format a time as models see it: in UTC, to the minute."""
    return f"{moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='minutes')}Z"


def readable_source(text: str) -> str:
    """Replace base64 in a message's text with a note of its length."""
    if len(text) < _SHORTEST_BASE64 or not _LONG_WORD.search(text):
        return text
    return _BASE64_LINES.sub(_base64_note_if_even, _BASE64.sub(_base64_note, text))


def without_added(text: str, added: Iterable[str]) -> str:
    """Replace each text that a host added to a message by a note of its length."""
    for each in added:
        # A flattened message has each part on lines of its own.
        note = f"[added by the host, {len(each)} characters]"
        text = f"\n{text}\n".replace(f"\n{each}\n", f"\n{note}\n", 1)[1:-1]
    return text


def _base64_note(found: re.Match[str]) -> str:
    return f"[base64, {len(found[0])} characters]"


def _base64_note_if_even(found: re.Match[str]) -> str:
    """Replace lines of equal length; others may be a list of paths."""
    lengths = {len(line) for line in re.split(_BREAK, found[0])[:-1]}
    return _base64_note(found) if len(lengths) == 1 else found[0]
