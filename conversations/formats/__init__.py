"""Messages as they are written elsewhere: each format a reader and, where it is not our own, its exact inverse. Pure.

`from_x` makes a message of a row, `to_x` gives the row back: what a format says that the store has no column for stays
in the metadata under the format's name (see `remainder`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from conversations.formats.anthropic_messages import TYPES, from_anthropic, signed_thought, to_anthropic
from conversations.formats.native import from_native
from conversations.formats.neutral import from_neutral, to_neutral
from conversations.formats.openai_chat import arguments_of, from_openai_chat, to_openai_chat
from conversations.formats.openai_responses import PIECES, from_openai_responses, is_item, to_openai_responses
from conversations.types import NewMessage

__all__ = [
    "READERS",
    "Format",
    "arguments_of",
    "detect",
    "from_anthropic",
    "from_native",
    "from_neutral",
    "from_openai_chat",
    "from_openai_responses",
    "signed_thought",
    "to_anthropic",
    "to_neutral",
    "to_openai_chat",
    "to_openai_responses",
]


class Format(StrEnum):
    LCM = "lcm"
    NEUTRAL = "neutral"
    OPENAI_CHAT = "openai"
    OPENAI_RESPONSES = "openai_responses"
    ANTHROPIC = "anthropic"


READERS: Mapping[str, Callable[[Mapping[str, Any]], NewMessage]] = {
    Format.LCM: from_native,
    Format.NEUTRAL: from_neutral,
    Format.OPENAI_CHAT: from_openai_chat,
    Format.OPENAI_RESPONSES: from_openai_responses,
    Format.ANTHROPIC: from_anthropic,
}


# Keys that only a chat message has, roles that only it knows, and the types of pieces that only it holds.
_OF_CHAT = frozenset({"tool_calls", "tool_call_id", "function_call", "refusal"})
_ROLES_OF_CHAT = frozenset({"developer", "tool", "function"})
_PIECES_OF_CHAT = frozenset({"image_url", "input_audio", "file"})


def detect(row: Any) -> Format | None:
    """The foreign format of a message; None for one that is the same in all; ValueError if it is no message.

    A message that only has a role and a text means the same in every format.
    """
    if is_item(row):
        return Format.OPENAI_RESPONSES
    if not isinstance(row, Mapping) or "role" not in row:
        raise ValueError("This is not a message: it must be an object with a role.")
    if "parts" in row or "seq" in row:
        return Format.NEUTRAL
    content = row.get("content")
    pieces = content if isinstance(content, list) else []
    types = {str(piece.get("type")) for piece in pieces if isinstance(piece, Mapping)}
    if types & TYPES:
        return Format.ANTHROPIC
    if types & PIECES:
        return Format.OPENAI_RESPONSES
    role = row["role"]
    is_chat = (
        not row.keys().isdisjoint(_OF_CHAT)
        or (isinstance(role, str) and role in _ROLES_OF_CHAT)
        or bool(types & _PIECES_OF_CHAT)
    )
    return Format.OPENAI_CHAT if is_chat else None
