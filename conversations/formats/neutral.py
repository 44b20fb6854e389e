"""Read and write the neutral message format, which `lcm import` accepts. Pure.

    {"session_id", "seq", "role", "content", "parts": [...], "created_at": ISO 8601 or null, "meta": {...}}

Parts are {"type": "text" | "reasoning" | "compaction", "text"}, {"type": "tool_call", "id", "name", "input"},
{"type": "tool_result", "id", "text", "is_error"}, {"type": "image", "mime", "caption", "url", "name"}. Other part types
of the store, and columns without a short name here, keep their own names, such as "is_synthetic".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from conversations.content.flattening import flattened
from conversations.content.json_values import noun_of
from conversations.content.lossless_values import is_bounded_decimal
from conversations.formats.foreign_rows import (
    Fields,
    is_bookkeeping,
    restored,
    split_remainder,
    timestamp_of,
    with_kept,
    with_remainder,
    written,
)
from conversations.formats.rendered import Item, Rendered
from conversations.types import MessageRecord, NewMessage, NewPart, PartType, Role

NOTE = "neutral"
# Arguments of `to_neutral`, not properties of the message.
_PLACE = ("session_id", "seq")

# The types of columns that are not text.
_COLUMN_KINDS = {"is_ignored": bool, "is_synthetic": bool, "compaction_auto": bool, "step_tokens_in": int,
                 "step_tokens_out": int}  # fmt: skip
_COLUMNS = tuple(name for name in NewPart.__dataclass_fields__ if name not in ("part_type", "metadata"))


@dataclass(frozen=True)
class _Kind:
    """How a type of part is written: short names, implied values, constant keys."""

    type: str
    part_type: PartType
    names: Mapping[str, str] = field(default_factory=dict)
    implied: Mapping[str, Any] = field(default_factory=dict)
    constant: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def columns(self) -> dict[str, str]:
        """Map every key of such an object to its column."""
        rest = (column for column in _COLUMNS if column not in self.names.values())
        return {**self.names, **{column: column for column in rest}}


_TEXT = {"text": "text_content"}
_TOOL = {"id": "tool_call_id", "name": "tool_name"}
_FILE = {"mime": "file_mime", "caption": "text_content", "url": "file_url", "name": "file_name"}
_CALL = _Kind("tool_call", PartType.TOOL, {**_TOOL, "input": "tool_input"}, {"tool_status": "pending"})
_RESULT = _Kind(
    "tool_result", PartType.TOOL, {**_TOOL, "text": "tool_output"}, {"tool_status": "completed"}, {"is_error": False}
)
_ERROR = _Kind(
    "tool_result", PartType.TOOL, {**_TOOL, "text": "tool_error"}, {"tool_status": "error"}, {"is_error": True}
)
_IMAGE = _Kind("image", PartType.FILE, _FILE, {"file_mime": "image/*"})
_KINDS = {
    **{part_type.value: _Kind(part_type.value, part_type) for part_type in PartType},
    **{name: _Kind(name, PartType(name), _TEXT) for name in ("text", "reasoning", "compaction")},
    **{kind.type: kind for kind in (_CALL, _RESULT, _IMAGE)},
}
PART_TYPES = tuple(_KINDS)
_ROLES = {role.value: role for role in Role}


def from_neutral(row: Mapping[str, Any]) -> NewMessage:
    """Read a row, its content verbatim; ValueError names the field that is wrong.

    A time without a zone is read as UTC. Unknown keys are kept in the metadata.
    """
    fields = Fields.of(row)
    fields.text("session_id")
    fields.read("seq", int)
    parts = tuple(map(_part_of, fields.objects("parts")))
    content = fields.text("content")
    if content is None and not parts:
        raise ValueError("content must be a text where there are no parts.")
    meta = fields.read("meta", dict) or {}
    message = NewMessage(
        role=fields.choice("role", _ROLES),
        content=content,
        parts=parts,
        author=fields.text("author"),
        created_at=fields.moment("created_at"),
        metadata={} if NOTE in meta else meta,
    )
    # The store fills in missing values; the remainder records that they were missing.
    plain = {**_plain(message), "created_at": timestamp_of(message.created_at)}
    if content is None:
        plain["content"] = flattened(parts)
    return with_remainder(message, NOTE, {key: value for key, value in row.items() if key not in _PLACE}, plain)


def to_neutral(record: MessageRecord, *, session_id: str, first_seq: int = 1) -> dict[str, Any]:
    """Return the row of a message; `first_seq` is the seq of the first message."""
    place = {"session_id": session_id, "seq": record.seq - 1 + first_seq}
    return place | with_kept(_plain(record), record.metadata, NOTE)


def render_neutral(items: Iterable[Item]) -> Rendered:
    """Render an assembled context as one row for each item, with its id and seqs."""
    shown = tuple(items)
    return Rendered(messages=tuple(map(_row, shown)), sources=tuple((item.id,) for item in shown))


def _row(item: Item) -> dict[str, Any]:
    message = NewMessage(
        role=item.role,
        content=item.text,
        parts=tuple(item.parts),
        author=item.author,
        created_at=item.created_at,
        metadata=item.metadata,
    )
    row = with_kept(_plain(message), item.metadata, NOTE)
    return {"id": item.id, "seq": item.first_seq, **row, "last_seq": item.last_seq}


def _plain(message: NewMessage | MessageRecord) -> dict[str, Any]:
    metadata = split_remainder(message.metadata, NOTE)[0]
    return {
        "role": message.role.value,
        "content": message.content,
        "parts": [_item_of(part) for part in message.parts if not is_bookkeeping(part)],
        "created_at": written(message.created_at),
        **({} if message.author is None else {"author": message.author}),
        **({"meta": dict(metadata)} if metadata else {}),
    }


def _part_of(item: Fields) -> NewPart:
    kind = item.choice("type", _KINDS)
    if kind is _RESULT and item.read("is_error", bool):
        kind = _ERROR
    given = {column: _column_value(column, item, key) for key, column in kind.columns.items() if key in item.values}
    meta = item.values.get("meta")
    metadata = meta if meta and isinstance(meta, dict) and NOTE not in meta else None
    part = NewPart(kind.part_type, metadata=metadata, **kind.implied | given)
    return with_remainder(part, NOTE, item.values, _item_of(part))


def _item_of(part: NewPart) -> dict[str, Any]:
    """Return the object of a part, the exact inverse of `_part_of`."""
    kind = _kind_of(part)
    metadata, rest = split_remainder(part.metadata, NOTE)
    item: dict[str, Any] = {"type": kind.type}
    for key, column in kind.columns.items():
        # A part read from the store may lack columns in `vars`.
        if (value := vars(part).get(column)) != kind.implied.get(column):
            item[key] = _json_value(value)
    item |= kind.constant
    if metadata not in (None, {}):
        item["meta"] = metadata
    return restored(item, rest)


def _kind_of(part: NewPart) -> _Kind:
    """Return the shortest form of a part that keeps all of its columns."""
    if part.part_type is PartType.TOOL:
        if part.tool_output is None and part.tool_error is None:
            return _CALL
        if part.tool_input is None and (part.tool_output is None or part.tool_error is None):
            return _RESULT if part.tool_error is None else _ERROR
    if part.part_type is PartType.FILE and (part.file_mime or "").startswith("image/"):
        return _IMAGE
    return _KINDS[part.part_type.value]


def _column_value(column: str, item: Fields, key: str) -> Any:
    if column == "tool_input":
        return item.values[key]
    if column == "patch_files":
        files = item.read(key, list)
        if files and not all(isinstance(file, str) for file in files):
            raise ValueError(f"{item.where}{key} must be a list of texts.")
        return None if files is None else tuple(files)
    if column == "step_cost":
        return _decimal(item.values[key], field=item.where + key)
    return item.read(key, _COLUMN_KINDS.get(column, str))


def _decimal(value: Any, *, field: str) -> Decimal | None:
    if value is None:
        return None
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"{field} must be a decimal number, not {noun_of(value)}.") from None
    if not is_bounded_decimal(number):
        raise ValueError(f"{field} must be a decimal number of sensible size.")
    return number


def _json_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return format(value, "f")
    return list(value) if isinstance(value, tuple) else value
