"""Write conversations as files for other programs. Pure.

Messages that were read from a format are written as the same rows. If any message cannot be written as such a row, all
are rendered as in a request.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

from conversations.content.flattening import texts_for_readers
from conversations.content.lossless_values import storable
from conversations.formats.abridged import Place, place_of
from conversations.formats.anthropic import render_anthropic, to_anthropic
from conversations.formats.claude_code import NOTE, is_line, to_claude_code
from conversations.formats.foreign_rows import is_result, split_remainder, written
from conversations.formats.openai_chat import render_openai_chat, to_openai_chat
from conversations.formats.rendered import Rendered
from conversations.types import MessageRecord, Role

_NAMES = uuid.UUID("6f8a4c0e-6d0f-4b0b-9a53-0f7d7a0c1c5e")
_HEADINGS = {Role.USER: "User", Role.ASSISTANT: "Assistant", Role.SYSTEM: "System", Role.TOOL: "Tool"}


class ExportFormat(StrEnum):
    """The file formats that a conversation can be exported to."""

    CLAUDE_CODE = "claude-code"
    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    MARKDOWN = "markdown"
    JOURNAL = "journal"


# Returns the journal line at a position, if it exists.
LineAt = Callable[[Place], Mapping[str, Any] | None]


def exported(
    messages: Sequence[MessageRecord],
    format: ExportFormat,
    *,
    session_id: str,
    title: str = "",
    directory: str = "",
    line_at: LineAt = lambda place: None,
) -> Iterator[str]:
    """Yield the lines of the file, without line ends.

    An abridged message (see `abridged`) becomes its original line, read by `line_at` from the journal.
    """
    match format:
        case ExportFormat.MARKDOWN:
            yield from _markdown(messages, title or session_id)
        case ExportFormat.CLAUDE_CODE:
            yield from map(_json, _claude_code(messages, session_id, directory, line_at))
        case ExportFormat.ANTHROPIC:
            yield from map(_json, _anthropic(messages))
        case ExportFormat.OPENAI:
            yield from map(_json, _openai(messages))
        case ExportFormat.JOURNAL:
            raise ValueError("The journal is no rendering of messages.")


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=True)


def journal_line(entry: Mapping[str, Any] | None) -> str:
    """Serialize a journal entry as hosts do, without blanks; `null` if it is erased."""
    text = json.dumps(entry, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate can only be written as an escape.
    return text if text.isascii() or storable(text) == text else json.dumps(entry, separators=(",", ":"))


def _openai(messages: Sequence[MessageRecord]) -> list[Mapping[str, Any]]:
    if not any(map(_has_both, messages)):
        try:
            return [to_openai_chat(message) for message in messages]
        except ValueError:
            # One message with the results of several calls takes several rows.
            pass
    return _rows_of(render_openai_chat(map(_item, messages)))


def _anthropic(messages: Sequence[MessageRecord]) -> list[Mapping[str, Any]]:
    if any(map(_has_both, messages)):
        return _rows_of(render_anthropic(map(_item, messages)))
    return [to_anthropic(message) for message in messages]


def _claude_code(
    messages: Sequence[MessageRecord], session_id: str, directory: str, line_at: LineAt
) -> Iterator[Mapping[str, Any]]:
    """Yield the lines of a transcript, each with its predecessor as its parent."""
    lines = list(takewhile(bool, (_line(message, line_at) for message in messages)))
    if messages and len(lines) == len(messages):
        known = {line.get("uuid") for line in lines}
        before = None
        for line in lines:
            # The parent of such a line had no message, so it is not exported.
            yield line if line.get("parentUuid") in known else {**line, "parentUuid": before}
            before = line.get("uuid")
        return
    named = _uuid(session_id)
    moments = {_item(message).id: message.created_at for message in messages}
    rendered = render_anthropic(map(_item, messages))
    rows = [({"role": "user", "content": [block]}, ()) for block in rendered.system]
    parent = None
    for number, (row, sources) in enumerate([*rows, *zip(rendered.messages, rendered.sources, strict=True)]):
        role = row["role"]
        message: dict[str, Any] = dict(row)
        if role == "assistant":
            message = {"id": f"msg_{number}", "type": "message", "model": "lcm", **row, "stop_reason": None,
                       "stop_sequence": None, "usage": {"input_tokens": 0, "output_tokens": 0}}  # fmt: skip
        own = _uuid(f"{named}:{number}")
        moment = next((moments[each] for each in sources if each in moments), messages[0].created_at)
        yield {
            "parentUuid": parent, "isSidechain": False, "userType": "external", "cwd": directory or "/",
            "sessionId": named, "version": "2.0.0", "gitBranch": "", "type": role, "message": message,
            "isMeta": number < len(rows), "uuid": own, "timestamp": written(moment),
        }  # fmt: skip
        parent = own


def _line(message: MessageRecord, line_at: LineAt) -> Mapping[str, Any]:
    """Return the line that a message was imported from; {} if it was no transcript's."""
    place = place_of(message.metadata)
    if place and (line := line_at(place)) and is_line(line):
        return line
    return to_claude_code(message) if split_remainder(message.metadata, NOTE)[1] else {}


def _uuid(name: str) -> str:
    """Return the name if it is a UUID, which Claude Code requires, else derive one."""
    try:
        return str(uuid.UUID(name))
    except ValueError:
        return str(uuid.uuid5(_NAMES, name))


def _markdown(messages: Sequence[MessageRecord], title: str) -> Iterator[str]:
    yield f"# {title}"
    for message in messages:
        yield ""
        author = f" ({message.author})" if message.author else ""
        yield f"## {_HEADINGS[message.role]}{author}, {written(message.created_at)}"
        texts = texts_for_readers(message.content, message.parts)
        for text in texts if message.erased_by_id is None else ["[erased]"]:
            yield ""
            yield text


def _has_both(message: MessageRecord) -> bool:
    """Whether some part has both a call and its result, as the store allows."""
    return any(is_result(part) and part.tool_input is not None for part in message.parts)


def _item(message: MessageRecord) -> Any:
    """Return the message as an `Item` for renderers."""
    own = {"id": message.id, "text": message.content, "first_seq": message.seq, "last_seq": message.seq}
    return SimpleNamespace(**vars(message), **own)


def _rows_of(rendered: Rendered) -> list[Mapping[str, Any]]:
    system = [{"role": "system", "content": [block]} for block in rendered.system]
    return [*system, *rendered.messages]
