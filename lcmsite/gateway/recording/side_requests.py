"""Recognize requests of a host's own, outside of the conversation. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum

from lcmsite.gateway.surfaces import ReadRequest, Row, Task
from lcmsite.gateway.surfaces_digest import without_injected


class Side(StrEnum):
    """What a host wanted beside the conversation."""

    PROBE = "probe"
    TITLE = "title"
    SUGGESTION = "suggestion"
    COMPACTION = "compaction"
    OTHER = "other"


# In the instructions or the first message of a request without tools.
_TITLES = re.compile(
    r"title generator|\b(?:generate|create|write|come up with|produce|extract)\b[^.\n]{0,80}\btitles?\b"
    r"|summarize this (?:coding )?conversation in (?:under|less than)|new conversation topic",
    re.IGNORECASE,
)
_SUGGESTIONS = re.compile(
    r"\[SUGGESTION MODE|suggest (?:the )?(?:next|what the user)|predict the user's next|prompt suggestion",
    re.IGNORECASE,
)
# At the beginning of the newest message: the host wants to compact.
_COMPACTIONS = re.compile(
    r"\s*(?:CRITICAL: Respond with TEXT ONLY|Your task is to create a detailed summary of"
    r"|You are performing a CONTEXT CHECKPOINT COMPACTION"
    r"|Provide a detailed (?:prompt|summary)[^.\n]{0,60}our conversation"
    r"|Summarize (?:the|our) conversation (?:above|so far)|The messages above are a conversation to summarize"
    r"|Create a (?:new )?(?:anchored )?summary (?:from|of) (?:the|our) conversation)"
)
_MOST_LOOKED_AT = 4000


def side_of(request: ReadRequest, task: Task, headers: Mapping[str, str]) -> Side | None:
    """What a host wants beside the conversation; None for a turn of it."""
    if headers.get("x-lcm-side"):
        return Side.OTHER
    if task is Task.COMPACT or _kind_of_codex(headers) == "compact":
        return Side.COMPACTION
    if request.most_output_tokens == 1:
        return Side.PROBE
    newest = _text(request.messages[-1].row) if request.messages else ""
    if _COMPACTIONS.match(newest):
        return Side.COMPACTION
    if _SUGGESTIONS.search(newest[:_MOST_LOOKED_AT]):
        return Side.SUGGESTION
    if not request.tools:
        head = " ".join([*map(_text, request.instructions), *(_text(each.row) for each in request.messages[:1])])
        if _TITLES.search(head[:_MOST_LOOKED_AT]):
            return Side.TITLE
    return None


def _kind_of_codex(headers: Mapping[str, str]) -> str:
    try:
        found = json.loads(headers.get("x-codex-turn-metadata", "{}"))
    except ValueError:
        found = {}
    kind = found.get("request_kind") if isinstance(found, dict) else None
    kind = kind or headers.get("x-openai-subagent")
    return "compact" if isinstance(kind, str) and kind.startswith("compact") else ""


def _text(row: Row) -> str:
    """The words of a block or of a message, without reminders."""
    given = row.get("text", row.get("content"))
    if isinstance(given, list):
        given = "\n".join(str(piece.get("text") or "") for piece in given if isinstance(piece, dict))
    return without_injected(given) if isinstance(given, str) else ""
