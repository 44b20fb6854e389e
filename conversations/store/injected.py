"""Remove text that LCM itself injected into a prompt from appended messages.

Such text is in an element with a mark that only this LCM can compute: an HMAC of the text's words. No other text is
removed, even if it is in an element of the same form. An injected text that was altered is stored like any other text.
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
_CLOSING = f"</{_NAME}>"
# These tags and white space may remain around the element. A message with nothing else is not stored.
_SHELL = re.compile(r"</?system-reminder>")
# An upper bound of the tokens of the element's tags, in any encoding.
MARK_TOKENS = 64


def wrapped(text: str) -> str:
    """Wrap a text in the element that appends remove."""
    inner = text.replace(f"</{_NAME}", f"&lt;/{_NAME}")
    return f'<{_NAME} mark="{_mark(inner, settings.SECRET_KEY)}">\n{inner}\n</{_NAME}>'


def _mark(text: str, key: str | bytes) -> str:
    # The mark covers only the words: hosts (agent programs) may change line breaks.
    words = " ".join(text.split())
    return salted_hmac("lcm.injected", words, secret=key, algorithm="sha256").hexdigest()[:_MARK_LENGTH]


def _is_ours(mark: str, text: str) -> bool:
    keys = (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)
    return any(constant_time_compare(mark, _mark(text, key)) for key in keys)


@dataclass(frozen=True)
class Screened:
    """The messages to store, and a record of the injected texts removed from them."""

    messages: tuple[NewMessage, ...]
    skipped: tuple[SkippedText, ...] = ()


def without_injected(messages: Sequence[NewMessage]) -> Screened:
    """Remove injected texts, and messages that have nothing else."""
    kept, skipped = [], []
    for position, message in enumerate(messages, start=1):
        rest, characters = _without(message)
        if characters:
            skipped.append(SkippedText(position, characters, is_whole=rest is None))
        if rest is not None:
            kept.append(rest)
    return Screened(tuple(kept), tuple(skipped))


def _without(message: NewMessage) -> tuple[NewMessage | None, int]:
    """Return the message without injected text, or None, and the removed length."""
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
        # The parts are kept, so the content may be empty.
        content = ""
    return replace(message, content=content, parts=tuple(parts)), characters


def _rest_of(text: str | None) -> tuple[str | None, int]:
    """Return the text without injected text, None if empty, and the removed length."""
    if not isinstance(text, str) or BEGINNING not in text:
        return text, 0
    # Beyond the last closing tag there is no element: each opening tag there would be searched to the end of the text.
    end = text.rfind(_CLOSING) + len(_CLOSING) if _CLOSING in text else 0
    rest = _ELEMENT.sub(lambda found: "" if _is_ours(found[1], found[2]) else found[0], text[:end]) + text[end:]
    if len(rest) == len(text):
        return text, 0
    return (rest if _SHELL.sub("", rest).strip() else None), len(text) - len(rest)
