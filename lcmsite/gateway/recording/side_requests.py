"""Recognize side requests: those a host makes for itself, as for titles. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from enum import StrEnum

from conversations.types import Role
from lcmsite.gateway.surfaces import ReadRequest, Row, Task, most_output_tokens
from lcmsite.gateway.surfaces_digest import without_injected


class Side(StrEnum):
    """The purpose of a side request."""

    PROBE = "probe"
    TITLE = "title"
    SUGGESTION = "suggestion"
    COMPACTION = "compaction"
    OTHER = "other"


# In the instructions of a first request without tools.
_TITLES = re.compile(
    r"title generator|\b(?:generate|create|write|come up with|produce|extract|crafting)\b[^.\n]{0,80}\btitles?\b"
    r"|summarize this (?:coding )?conversation in (?:under|less than)|new conversation topic",
    re.IGNORECASE,
)
# At the beginning of the newest message, without tools: title prompts of hosts that send no instructions. A person's
# message that matches by chance is stored with the next request, which has it in its history.
_TITLE_PROMPTS = re.compile(
    r"\s*(?:### Task:\s*Generate a concise[^.\n]{0,40} title"
    r"|Please write a \d+-\d+ word title for|Provide a concise, 5-word-or-less title"
    r"|Generate a (?:concise|short|brief)[^.\n]{0,40} title for (?:this|the)\b"
    r"|Summarize this (?:coding )?conversation in (?:under|less than))"
)
_SUGGESTIONS = re.compile(r"\s*(?:\[SUGGESTION MODE|Predict the user's next|### Task:\s*Suggest \d-\d )")
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
    """Return a side request's purpose; None for a turn of the conversation."""
    if headers.get("x-lcm-side"):
        return Side.OTHER
    if task is Task.COMPACT or _is_compaction_of_codex(headers):
        return Side.COMPACTION
    if most_output_tokens(request.body) == 1:
        return Side.PROBE
    last = request.messages[-1] if request.messages else None
    newest = _text(last.row) if last is not None and last.message.role is Role.USER else ""
    if _COMPACTIONS.match(newest):
        return Side.COMPACTION
    if _SUGGESTIONS.match(newest):
        return Side.SUGGESTION
    if not request.tools and (_TITLE_PROMPTS.match(newest) or _is_for_a_title(request)):
        return Side.TITLE
    return None


def _is_for_a_title(request: ReadRequest) -> bool:
    """Whether a request without history has instructions to write a title."""
    has_history = any(each.message.role is Role.ASSISTANT for each in request.messages)
    words = " ".join(map(_text, request.instructions))
    return not has_history and _TITLES.search(words[:_MOST_LOOKED_AT]) is not None


def _is_compaction_of_codex(headers: Mapping[str, str]) -> bool:
    try:
        found = json.loads(headers.get("x-codex-turn-metadata", "{}"))
    except (ValueError, RecursionError):
        found = {}
    kind = found.get("request_kind") if isinstance(found, dict) else None
    kind = kind or headers.get("x-openai-subagent")
    return isinstance(kind, str) and kind.startswith("compact")


def _text(row: Row) -> str:
    """Return the text of a block or message, without injected text."""
    given = row.get("text", row.get("content"))
    if isinstance(given, list):
        given = "\n".join(str(piece.get("text") or "") for piece in given if isinstance(piece, dict))
    return without_injected(given) if isinstance(given, str) else ""
