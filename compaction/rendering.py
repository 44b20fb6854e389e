"""What a model sees of a summary, and what a summarizer sees of a message. Pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Protocol
from xml.sax.saxutils import quoteattr

# A run of base64 this long is an image or an archive, never something to be said again in a summary.
_BASE64 = re.compile(r"[A-Za-z0-9+/]{400,}={0,2}")
# The same in lines, as mails and certificates have it, or with the line breaks that JSON writes.
_BREAK = r"(?:\r?\n[ \t]*|\\r\\n|\\n)"
_BASE64_LINES = re.compile(rf"(?:[A-Za-z0-9+/]{{60,76}}{_BREAK}){{5,}}[A-Za-z0-9+/]{{0,76}}={{0,2}}")
# Most messages have no word as long as a line of either, and need not be searched for them.
_SHORTEST_LINE = 60
_SHORTEST_BASE64 = 5 * _SHORTEST_LINE
# Only the start of a word is tried, so that long runs of nearly long words stay cheap.
_LONG_WORD = re.compile(rf"(?<!\S)\S{{{_SHORTEST_LINE}}}")

# What stands where a text was that had to be erased for good.
ERASED = "[erased]"

# The ampersand first, as the others' names begin with one.
_ENTITIES = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"))

# As `isoformat` has it, in two thirds of its time: a context has two of them for each summary.
_MINUTE = "%04d-%02d-%02dT%02d:%02dZ"

# An id in which no tokenizer finds two characters to take together: none costs more.
_DEAREST_ID = "sum_" + 8 * "1a"


class Shown(Protocol):
    """What of a summary a model gets to see: of a new one, a stored one, or one that was read for nothing else."""

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


def render_dearest(summary: Shown) -> str:
    """The element with an id that costs the most: for counting, so that what a summary costs is not a matter of chance.

    Ids are random, and their tokens are more or fewer; what is planned by costs, and what is made of it, must not be.
    """
    return _element(summary, _DEAREST_ID)


def render_summary(summary: Shown) -> str:
    """The summary as an element that says what it is and how to open it.

    The text is escaped: whatever a conversation contained, it cannot end the element or pass for another one.
    """
    return _element(summary, summary.summary_id)


def _element(summary: Shown, summary_id: str) -> str:
    # Numbers, times, names and words of ours need no quoting; it runs for every summary of every context.
    quoted = f'"{summary_id}"' if summary_id.isidentifier() else quoteattr(summary_id)
    erased = getattr(summary, "erased_by_id", None) is not None
    return (
        f'<summary id={quoted} kind="{summary.kind}" depth="{summary.depth}"'
        f' messages="{summary.first_seq}-{summary.last_seq}"'
        f' from="{_time(summary.earliest_at)}" to="{_time(summary.latest_at)}" trust="untrusted">\n'
        f"{ERASED if erased else _escaped(summary.content)}\n</summary>"
    )


def _escaped(text: str) -> str:
    # Most texts have none of these, which is found out in a tenth of the time that it takes to replace none.
    for sign, entity in _ENTITIES:
        if sign in text:
            text = text.replace(sign, entity)
    return text


def _time(moment: datetime) -> str:
    at = moment.astimezone(UTC)
    return _MINUTE % (at.year, at.month, at.day, at.hour, at.minute)


def readable_source(text: str) -> str:
    """A message's text as a summarizer should read it: what only a machine can read is named, not quoted."""
    if len(text) < _SHORTEST_BASE64 or not _LONG_WORD.search(text):
        return text
    return _BASE64_LINES.sub(_named_if_even, _BASE64.sub(_named, text))


def _named(found: re.Match[str]) -> str:
    return f"[base64, {len(found[0])} characters]"


def _named_if_even(found: re.Match[str]) -> str:
    """Lines all of one length but the last; others may be a list of paths."""
    lengths = {len(line) for line in re.split(_BREAK, found[0])[:-1]}
    return _named(found) if len(lengths) == 1 else found[0]
