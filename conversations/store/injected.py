"""Leave out of appends what LCM itself had put into a prompt.

A host gets such text in an element whose mark only this LCM can make: a keyed hash of the words. So no other text is
ever left out, even in an element of the same form, and a text that was altered on the way is stored like any other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from conversations.types import NewMessage, NewPart, PartType, SkippedText

_NAME = "lcm_injected"
_MARK_LENGTH = 32
_ELEMENT = re.compile(rf'<{_NAME} mark="([0-9a-f]{{{_MARK_LENGTH}}})">(.*?)</{_NAME}>', re.DOTALL)
BEGINNING = f"<{_NAME} "
# What hosts put around it, which says nothing once it is empty.
_SHELL = re.compile(r"(\s|</?system-reminder>)*")
# More than the element costs, in any encoding.
MARK_TOKENS = 64


def marked(text: str) -> str:
    """The text as an element that an append leaves out."""
    inner = text.replace(f"</{_NAME}", f"&lt;/{_NAME}")
    return f'<{_NAME} mark="{_mark(inner, settings.SECRET_KEY)}">\n{inner}\n</{_NAME}>'


def _mark(text: str, key: str | bytes) -> str:
    # Hosts may wrap lines anew.
    words = " ".join(text.split())
    return salted_hmac("lcm.injected", words, secret=key, algorithm="sha256").hexdigest()[:_MARK_LENGTH]


def _is_ours(mark: str, text: str) -> bool:
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(constant_time_compare(mark, _mark(text, key)) for key in keys)


@dataclass(frozen=True)
class Screened:
    """The messages to store, and what was left out of those that were sent."""

    messages: tuple[NewMessage, ...]
    skipped: tuple[SkippedText, ...] = ()


def screened(messages: Sequence[NewMessage]) -> Screened:
    """Leave out what LCM injected; a message that was nothing else is not stored."""
    kept, skipped = [], []
    for position, message in enumerate(messages, start=1):
        rest, characters = _without(message)
        if characters:
            skipped.append(SkippedText(position, characters, is_whole=rest is None))
        if rest is not None:
            kept.append(rest)
    return Screened(tuple(kept), tuple(skipped))


def _without(message: NewMessage) -> tuple[NewMessage | None, int]:
    """The message without what LCM injected, and how many characters that was."""
    content, characters = _rest_of(message.content)
    parts: list[NewPart] = []
    for part in message.parts:
        text, cut = _rest_of(part.text_content)
        output, cut_output = _rest_of(part.tool_output)
        characters += cut + cut_output
        if cut and text is None and part.part_type is PartType.TEXT:
            continue
        parts.append(replace(part, text_content=text, tool_output="" if cut_output and output is None else output))
    if characters and content is None and not parts:
        return None, characters
    if characters and message.content is not None and content is None:
        # Its parts still say something.
        content = ""
    return replace(message, content=content, parts=tuple(parts)), characters


def _rest_of(text: str | None) -> tuple[str | None, int]:
    """The text without what LCM injected, None if none is left; and how much."""
    if not isinstance(text, str) or BEGINNING not in text:
        return text, 0
    rest = _ELEMENT.sub(lambda found: "" if _is_ours(found[1], found[2]) else found[0], text)
    if len(rest) == len(text):
        return text, 0
    return (None if _SHELL.fullmatch(rest) else rest), len(text) - len(rest)
