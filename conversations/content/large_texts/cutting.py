"""Cut texts that are too long out of a message, without loss. Pure.

What is cut out leaves a mark, random, so that it stands in no text by chance. Each mark later gives way to a text that
stands for the file, and what there is of places in the message is known exactly.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conversations.content.flattening import flattened
from conversations.content.lossless_values import is_storable
from conversations.types import NewMessage, NewPart, PartType

# Of the parts of these types, these fields. What a model thought goes back to its vendor as it came.
FIELDS: Mapping[PartType, tuple[str, ...]] = {
    PartType.TEXT: ("text_content",),
    PartType.RETRY: ("text_content",),
    PartType.PATCH: ("text_content",),
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
    """The place of a mark: characters of a field of a message or a part."""

    part_ordinal: int | None
    field: str
    start_at: int
    length: int
    mark: str


@dataclass(frozen=True)
class Marked:
    """A message with marks for what was cut out of it."""

    message: NewMessage
    cuts: Mapping[str, Cut] = field(default_factory=dict)


@dataclass(frozen=True)
class Scissors:
    """Cuts out what has more tokens than the limit."""

    limit: int
    count: Callable[[str], int]

    def cut(self, message: NewMessage) -> Marked:
        """Replace long texts by marks, in the parts and in a content of its own."""
        cuts: dict[str, Cut] = {}
        marked: dict[str, str] = {}
        parts = tuple(self._part(part, cuts, marked) for part in message.parts)
        content = message.content
        if content is not None:
            for original, with_marks in marked.items():
                content = content.replace(original, with_marks)
            if not _MARK.search(content) and not _repeats_a_part(parts, content):
                content = self._text(content, Cut(""), cuts)
        return Marked(replace(message, content=content, parts=parts), cuts)

    def _part(self, part: NewPart, cuts: dict[str, Cut], marked: dict[str, str]) -> NewPart:
        changes: dict[str, Any] = {}
        for name in FIELDS.get(part.part_type, ()):
            text = getattr(part, name)
            if isinstance(text, str) and len(text) > self.limit // 4:
                with_marks = self._text(text, _label(part), cuts)
                if with_marks != text:
                    changes[name] = marked[text] = with_marks
        return replace(part, **changes) if changes else part

    def _text(self, text: str, label: Cut, cuts: dict[str, Cut]) -> str:
        excess = self.count(text) - self.limit
        if excess <= 0:
            return text
        text = as_kept(text)
        chosen = []
        # The longest first: whatever else was said stays where it was said.
        for block in sorted(_blocks(text), key=lambda each: each.start - each.end):
            if excess > 0:
                excess -= self.count(text[block.start : block.end])
                chosen.append(block)
        if excess > 0:
            return _mark(replace(label, text=text), cuts)
        pieces, at = [], 0
        for block in sorted(chosen, key=lambda each: each.start):
            inside = Cut(text[block.start : block.end], block.file_name or label.file_name, block.mime_type)
            pieces += [text[at : block.start], _mark(inside, cuts)]
            at = block.end
        return "".join([*pieces, text[at:]])


def settle(marked: Marked, standing_for: Mapping[str, str]) -> tuple[NewMessage, list[Span]]:
    """Replace each mark by its text; return the message and where the texts are."""
    message, spans = marked.message, []
    parts = []
    for ordinal, part in enumerate(message.parts):
        changes: dict[str, Any] = {}
        for name in FIELDS.get(part.part_type, ()):
            text = getattr(part, name)
            if isinstance(text, str) and _MARK.search(text):
                changes[name], found = _settled(text, standing_for, part_ordinal=ordinal, field=name)
                spans += found
        parts.append(replace(part, **changes) if changes else part)
    whole = flattened(message.parts) if message.content is None else message.content
    if isinstance(whole, str) and _MARK.search(whole):
        whole, found = _settled(as_kept(whole), standing_for, part_ordinal=None, field=CONTENT)
        spans += found
    content = None if message.content is None else whole
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


def as_kept(text: str) -> str:
    """The text as it will be read: JSON joins the halves of a surrogate pair."""
    return text if is_storable(text) else str(json.loads(json.dumps(text)))


@dataclass(frozen=True)
class _Block:
    start: int
    end: int
    file_name: str | None
    mime_type: str | None


def _blocks(text: str) -> Iterator[_Block]:
    """What is inside each `<file ...>` element, one behind the other, in one pass."""
    at = 0
    while (opening := _OPENING.search(text, at)) is not None:
        end = text.find(_CLOSING, opening.end())
        if end < 0:
            return
        name, kind = _NAME.search(opening[1]), _TYPE.search(opening[1])
        if end > opening.end():
            yield _Block(opening.end(), end, _storable(name), _storable(kind))
        at = end + len(_CLOSING)


def _storable(found: re.Match[str] | None) -> str | None:
    return found[1] if found and is_storable(found[1]) else None


def _label(part: NewPart) -> Cut:
    """A name for the file of a part's text: that of its tool."""
    name = part.tool_title or part.tool_name
    usable = isinstance(name, str) and name and is_storable(name)
    return Cut("", file_name=f"{str(name)[:200]} output" if usable else None)


def _mark(cut: Cut, cuts: dict[str, Cut]) -> str:
    same = next((mark for mark, known in cuts.items() if known == cut), None)
    mark = same or f"\uf8ff{secrets.token_hex(16)}\uf8ff"
    cuts[mark] = cut
    return mark


def _repeats_a_part(parts: Iterable[NewPart], content: str) -> bool:
    """Whether a text of the parts is in the content."""
    texts = (getattr(part, name) for part in parts for name in FIELDS.get(part.part_type, ()))
    return any(isinstance(text, str) and text and text in content for text in texts)
