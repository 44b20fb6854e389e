"""Read sessions of OpenCode, from `opencode export` or its database. Pure.

    {"info": {"id", "parentID", "directory", "title", ...}, "messages": [{"info": {"id", "role", ...}, "parts": [...]}]}

The store has the same types of parts. Unfinished answers at the end are left out; a later import includes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from conversations.formats.documents.sessions import (
    HostSession,
    SessionMessage,
    from_milliseconds,
    object_of,
    text_of,
    without,
)
from conversations.formats.foreign_rows import Fields
from conversations.types import NewMessage, NewPart, PartType, Role

NOTE = "opencode"
_ROLES = {"user": Role.USER, "assistant": Role.ASSISTANT}
_TEXTS = {"text": PartType.TEXT, "reasoning": PartType.REASONING}


def is_document(value: Any) -> bool:
    """Whether this is such a session."""
    if not isinstance(value, Mapping) or not isinstance(value.get("info"), Mapping):
        return False
    messages = value.get("messages")
    return isinstance(messages, list) and all(isinstance(each, Mapping) and "parts" in each for each in messages)


def sessions_of(document: Mapping[str, Any], path: PurePath) -> Iterator[HostSession]:
    """Yield the session; ValueError names what is wrong in it."""
    info = Fields(document["info"], "info.")
    rows = list(document["messages"])
    passed_over: Counter[str] = Counter()
    while rows and _is_unfinished(rows[-1]):
        rows.pop()
        passed_over["unfinished"] += 1
    yield HostSession(
        session_id=info.required_text("id"),
        messages=tuple(_message(row, f"messages[{place}].") for place, row in enumerate(rows)),
        title=info.text("title") or "",
        project=info.text("directory") or "",
        parent_session_id=info.text("parentID") or "",
        passed_over=passed_over,
    )


def _is_unfinished(row: Mapping[str, Any]) -> bool:
    info = row.get("info")
    if not isinstance(info, Mapping) or info.get("role") != "assistant" or info.get("error") is not None:
        return False
    times = info.get("time")
    return isinstance(times, Mapping) and times.get("completed") is None


def _message(row: Mapping[str, Any], where: str) -> SessionMessage:
    info = object_of(row.get("info"), f"{where}info")
    fields = Fields(info, f"{where}info.")
    parts: list[NewPart] = []
    rest: list[dict[str, Any]] = []
    for each in Fields(row, where).objects("parts"):
        part, left = _part(each)
        parts += [] if part is None else [part]
        rest.append(left)
    times = info.get("time")
    message = NewMessage(
        role=fields.choice("role", _ROLES),
        content=None if parts else "",
        parts=tuple(parts),
        created_at=from_milliseconds(times.get("created")) if isinstance(times, Mapping) else None,
        metadata={NOTE: {"info": without(info, "role"), "parts": rest, **without(row, "info", "parts")}},
    )
    return SessionMessage(message, row, id=text_of(info.get("id")))


def _part(fields: Fields) -> tuple[NewPart | None, dict[str, Any]]:
    """Return the part (None for an unknown type), and its keys without a column."""
    row, type = fields.values, fields.required_text("type")
    if type in _TEXTS:
        part = NewPart(
            _TEXTS[type],
            text_content=fields.text("text"),
            is_synthetic=fields.read("synthetic", bool),
            is_ignored=fields.read("ignored", bool),
        )
        return part, without(row, "text", "synthetic", "ignored")
    if type == "tool":
        return _tool(fields)
    if type == "file":
        mime, name, url = fields.text("mime"), fields.text("filename"), fields.text("url")
        part = NewPart(PartType.FILE, file_mime=mime, file_name=name, file_url=url)
        return part, without(row, "mime", "filename", "url")
    return _bookkeeping(fields, type)


def _tool(fields: Fields) -> tuple[NewPart, dict[str, Any]]:
    state = fields.inner("state")
    part = NewPart(
        PartType.TOOL,
        tool_call_id=fields.text("callID"),
        tool_name=fields.text("tool"),
        tool_status=state.text("status"),
        tool_input=state.values.get("input"),
        tool_output=state.text("output"),
        tool_error=state.text("error"),
        tool_title=state.text("title"),
    )
    rest = without(fields.values, "callID", "tool", "state")
    return part, rest | {"state": without(state.values, "status", "input", "output", "error", "title")}


def _bookkeeping(fields: Fields, kind: str) -> tuple[NewPart | None, dict[str, Any]]:
    """Read a part that has no text for a model; return it and its complete row."""
    row = dict(fields.values)
    match kind:
        case "step-start":
            return NewPart(PartType.STEP_START, snapshot_hash=fields.text("snapshot")), row
        case "step-finish":
            tokens, cost = fields.inner("tokens").values, row.get("cost")
            part = NewPart(
                PartType.STEP_FINISH,
                step_reason=fields.text("reason"),
                step_cost=Decimal(str(cost)) if type(cost) in (int, float) else None,
                step_tokens_in=_count(tokens.get("input")),
                step_tokens_out=_count(tokens.get("output")),
                snapshot_hash=fields.text("snapshot"),
            )
            return part, row
        case "snapshot":
            return NewPart(PartType.SNAPSHOT, snapshot_hash=fields.text("snapshot")), row
        case "patch":
            files = tuple(filter(None, map(text_of, fields.read("files", list) or ())))
            return NewPart(PartType.PATCH, patch_hash=fields.text("hash"), patch_files=files), row
        case "agent":
            return NewPart(PartType.AGENT, text_content=fields.text("name")), row
        case "retry":
            error = row.get("error")
            data = error.get("data") if isinstance(error, Mapping) else None
            reason = data.get("message") if isinstance(data, Mapping) else None
            return NewPart(PartType.RETRY, text_content=text_of(reason)), row
        case "compaction":
            return NewPart(PartType.COMPACTION, compaction_auto=fields.read("auto", bool)), row
        case "subtask":
            part = NewPart(
                PartType.SUBTASK,
                subtask_prompt=fields.text("prompt"),
                subtask_desc=fields.text("description"),
                subtask_agent=fields.text("agent"),
            )
            return part, row
    return None, row


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
