"""Cut texts that are too long out of a message, without loss. Pure.

Each text that is cut out is replaced by a random mark, which occurs in no other text. `fill_marks` later replaces each
mark by the element of its file, and returns the exact positions of these elements.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conversations.content.flattening import MOST_COMPARED, flattened
from conversations.content.lossless_values import is_storable
from conversations.types import NewMessage, NewPart, PartType

# The fields that may be cut, by type of part. Reasoning is never cut: it must go back to its vendor unchanged.
FIELDS: Mapping[PartType, tuple[str, ...]] = {
    PartType.TEXT: ("text_content",),
    PartType.RETRY: ("text_content",),
    PartType.PATCH: ("text_content",),
    PartType.FILE: ("text_content",),
    PartType.TOOL: ("tool_output", "tool_error"),
}
CONTENT = "content"

_OPENING = re.compile(r"<file\b([^<>]{0,1000})>")
_CLOSING = "</file>"
_NAME = re.compile(r"""\b(?:name|path|filename)\s*=\s*["']([^"'\x00]{1,200})["']""")
_TYPE = re.compile(r"""\b(?:type|mime|mime_type)\s*=\s*["']([^"'\x00]{1,100})["']""")
_MARK = re.compile("\uf8ff[0-9a-f]{32}\uf8ff")


@dataclass(frozen=True)
class Cut:
    """A text that becomes a file."""

    text: str
    file_name: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True)
class Span:
    """The position of a mark's text: characters in a field of a message or a part."""

    part_ordinal: int | None
    field: str
    start_at: int
    length: int
    mark: str


@dataclass(frozen=True)
class MarkedMessage:
    """A message with marks in place of the texts that were cut out of it."""

    message: NewMessage
    cuts: Mapping[str, Cut] = field(default_factory=dict)


@dataclass(frozen=True)
class TextCutter:
    """Cuts texts of more tokens than `limit` out of one message."""

    limit: int
    count: Callable[[str], int]
    _cuts: dict[str, Cut] = field(default_factory=dict)

    def cut(self, message: NewMessage) -> MarkedMessage:
        """Replace long texts by marks, in the parts and in the content."""
        with_marks: dict[str, str] = {}
        parts = []
        for part in message.parts:
            label = Cut("", file_name=_name_of(part))
            changes: dict[str, Any] = {}
            for name, text in _texts_of(part).items():
                if len(text) > self.limit // 4:
                    changes[name] = with_marks[text] = self._text(text, label)
            parts.append(replace(part, **changes))
        content = message.content
        if content is not None:
            # If the comparison would take too long, the content may become a file of its own.
            is_compared = len(content) * len(parts) <= MOST_COMPARED
            for text, marked in with_marks.items() if is_compared else ():
                content = content.replace(text, marked)
            repeated = (text for part in parts for text in _texts_of(part).values() if text and is_compared)
            if not _MARK.search(content) and not any(text in content for text in repeated):
                content = self._text(content, Cut(""))
        return MarkedMessage(replace(message, content=content, parts=tuple(parts)), self._cuts)

    def _text(self, text: str, label: Cut) -> str:
        excess = self.count(text) - self.limit
        if excess <= 0:
            return text
        text = as_kept(text)
        chosen = []
        # The longest blocks first, so that as much as possible stays in the message.
        for start, inside in sorted(_blocks(text), key=lambda block: -len(block[1].text)):
            if excess > 0:
                excess -= self.count(inside.text)
                chosen.append((start, replace(inside, file_name=inside.file_name or label.file_name)))
        if excess > 0:
            return self._mark(replace(label, text=text))
        pieces, at = [], 0
        for start, inside in sorted(chosen, key=lambda block: block[0]):
            pieces += [text[at:start], self._mark(inside)]
            at = start + len(inside.text)
        return "".join([*pieces, text[at:]])

    def _mark(self, cut: Cut) -> str:
        same = next((mark for mark, known in self._cuts.items() if known == cut), None)
        mark = same or f"\uf8ff{secrets.token_hex(16)}\uf8ff"
        self._cuts[mark] = cut
        return mark


def fill_marks(marked: MarkedMessage, standing_for: Mapping[str, str]) -> tuple[NewMessage, list[Span]]:
    """Replace each mark by its text; return the message and the texts' spans."""
    message, spans = marked.message, []
    parts = []
    for ordinal, part in enumerate(message.parts):
        changes: dict[str, Any] = {}
        for name, text in _texts_of(part).items():
            changes[name], found = _settled(text, standing_for, part_ordinal=ordinal, field=name)
            spans += found
        parts.append(replace(part, **changes))
    content = message.content
    whole = flattened(message.parts) if content is None else content
    if isinstance(whole, str) and _MARK.search(whole):
        whole, found = _settled(as_kept(whole), standing_for, part_ordinal=None, field=CONTENT)
        spans += found
        content = None if content is None else whole
    return replace(message, content=content, parts=tuple(parts)), spans


def _settled(
    text: str, standing_for: Mapping[str, str], *, part_ordinal: int | None, field: str
) -> tuple[str, list[Span]]:
    pieces, spans, at, length = [], [], 0, 0
    for found in _MARK.finditer(text):
        mark = found[0]
        if mark not in standing_for:
            continue
        before, shown = text[at : found.start()], standing_for[mark]
        spans.append(Span(part_ordinal, field, length + len(before), len(shown), mark))
        pieces += [before, shown]
        length += len(before) + len(shown)
        at = found.end()
    return "".join([*pieces, text[at:]]), spans


def _texts_of(part: NewPart) -> dict[str, str]:
    """Return the texts of a part that may become files, by field."""
    texts = {name: getattr(part, name) for name in FIELDS.get(part.part_type, ())}
    return {name: text for name, text in texts.items() if isinstance(text, str)}


def as_kept(text: str) -> str:
    """Return a text as it will be read back: JSON joins surrogate pairs."""
    return text if is_storable(text) else str(json.loads(json.dumps(text)))


def _blocks(text: str) -> Iterator[tuple[int, Cut]]:
    """Yield the content of each `<file ...>` element with its offset."""
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        start = opening.end()
        end = text.find(_CLOSING, start)
        if end < 0:
            return
        if end > start:
            yield start, Cut(text[start:end], _attribute(_NAME, opening[1]), _attribute(_TYPE, opening[1]))
        at = end + len(_CLOSING)


def _attribute(pattern: re.Pattern[str], attributes: str) -> str | None:
    found = pattern.search(attributes)
    return found[1] if found and is_storable(found[1]) else None


def _name_of(part: NewPart) -> str | None:
    """Name the file of a part's text as the part, or after its tool, if possible."""
    tool = part.tool_title or part.tool_name
    name = part.file_name or (f"{tool[:200]} output" if isinstance(tool, str) and tool else None)
    return name[:200] if isinstance(name, str) and is_storable(name) else None
