"""What sort of entry a message is, and whose: what specification 002 asks of a ledger, read off the message. Pure.

Of its parts count those that it came with; a note that compaction leaves there later changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any


class Kind(StrEnum):
    MESSAGE = "message"
    TOOL_RESULT = "tool_result"
    ARTIFACT = "artifact"
    EVENT = "event"


_SAYING = {"text", "reasoning", "subtask", "tool"}
_ARTIFACTS = {"file", "patch", "snapshot"}


def kind_of(role: str, parts: Sequence[Mapping[str, Any]]) -> Kind:
    """A result is what a tool has said; an artifact brings files or patches alone; an event, bookkeeping alone."""
    types = {str(part["part_type"]) for part in parts}
    if role == "tool" or (types == {"tool"} and all(_is_result(part) for part in parts)):
        return Kind.TOOL_RESULT
    if not types or types & _SAYING:
        return Kind.MESSAGE
    return Kind.ARTIFACT if types & _ARTIFACTS else Kind.EVENT


def actor_of(role: str, author: str | None) -> str:
    """Who acted: the author, or, where none is named, the role."""
    return author or role


def _is_result(part: Mapping[str, Any]) -> bool:
    return "tool_output" in part or "tool_error" in part
