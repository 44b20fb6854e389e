"""Shorten tool results, if nothing else makes a request fit. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from conversations.store.injected import wrapped
from lcmsite.gateway.window.counting import RequestCounter
from lcmsite.gateway.window.summary_block import SeqRange, pointer_to
from lcmsite.gateway.window.types import Entry, Kind

# The shares for the beginning and the end of a text, of the limit minus the note; the rest is a margin.
_BEGINNING, _END = 0.6, 0.2
_NOTE_TOKENS = 128
# The keys under which results hold text, on all surfaces.
_TEXTS = frozenset({"content", "output", "text"})
# The keys under which results name their call, and the hint for a result that no stored message has.
_CALL_IDS = ("tool_use_id", "tool_call_id", "call_id")
_CALL_AGAIN = "Call the tool again for all of it."


@dataclass(frozen=True)
class ResultShortener:
    """Replaces the middle of long results by a note on how to read the whole text."""

    counter: RequestCounter
    conversation_id: int

    def shorten_entry(self, entry: Entry, most: int) -> Entry:
        """Return the entry with result texts of over `most` tokens shortened."""
        if entry.kind is not Kind.RESULT or entry.tokens <= most or entry.seq is None:
            return entry
        # The mark keeps the hint from being stored when it comes back.
        pointer = wrapped(pointer_to(self.conversation_id, SeqRange(entry.seq, entry.seq)))
        value = self._object(entry.value, most, pointer, entry.looked_up)
        return entry if value == entry.value else self.counter.replace_value(entry, value)

    def _object(self, value: Mapping[str, Any], most: int, pointer: str, looked_up: Collection[str]) -> dict[str, Any]:
        if any(value.get(key) in looked_up for key in _CALL_IDS):
            pointer = _CALL_AGAIN
        return {
            key: self._value(inner, most, pointer, looked_up) if key in _TEXTS else inner
            for key, inner in value.items()
        }

    def _value(self, value: Any, most: int, pointer: str, looked_up: Collection[str]) -> Any:
        if isinstance(value, str):
            return self._text(value, most, pointer)
        if isinstance(value, list):
            return [self._object(each, most, pointer, looked_up) if isinstance(each, dict) else each for each in value]
        return value

    def _text(self, text: str, most: int, pointer: str) -> str:
        tokens = self.counter.tokens(text)
        if tokens <= most:
            return text
        room = max(0, most - _NOTE_TOKENS) / tokens
        while True:
            begin, end = text[: int(len(text) * room * _BEGINNING)], text[len(text) - int(len(text) * room * _END) :]
            note = f"[LCM left out {len(text) - len(begin) - len(end)} of {len(text)} characters. {pointer}]"
            short = f"{begin}\n{note}\n{end}" if begin else note
            # The two ends may have more tokens per character than the whole text.
            if not begin or self.counter.tokens(short) <= most:
                return short if len(short) < len(text) else text
            room /= 2
