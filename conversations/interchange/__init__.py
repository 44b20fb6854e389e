"""Messages as they are written elsewhere: each format a reader and, where it is not our own, its exact inverse. Pure.

`from_x` makes a message of a row, `to_x` gives the row back: what a format says that the store has no column for stays
in the metadata under the format's name (see `remainder`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any

from conversations.interchange.native import from_native
from conversations.interchange.neutral import from_neutral, to_neutral
from conversations.interchange.openai_chat import arguments_of, from_openai_chat, to_openai_chat
from conversations.types import NewMessage

__all__ = [
    "READERS",
    "Format",
    "arguments_of",
    "detect",
    "from_native",
    "from_neutral",
    "from_openai_chat",
    "to_neutral",
    "to_openai_chat",
]


class Format(StrEnum):
    LCM = "lcm"
    NEUTRAL = "neutral"
    OPENAI_CHAT = "openai"


READERS: Mapping[str, Callable[[Mapping[str, Any]], NewMessage]] = {
    Format.LCM: from_native,
    Format.NEUTRAL: from_neutral,
    Format.OPENAI_CHAT: from_openai_chat,
}


def detect(first_row: Any) -> Format:
    """The foreign format of a history, by its first message; ValueError if it is none we know.

    A row that only has a role and a text is a message in all formats and means the same in all.
    """
    if not isinstance(first_row, Mapping) or "role" not in first_row:
        raise ValueError("The first row is not a message: it must be an object with a role.")
    return Format.NEUTRAL if "parts" in first_row or "seq" in first_row else Format.OPENAI_CHAT
