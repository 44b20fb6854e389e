"""Read rows of other systems field by field, and restore them exactly. Pure.

A converter writes the plain form of a message: the keys that our columns can hold. The difference to the original row
is its remainder: keys to `add`, keys to `drop`, and remainders `inside` objects that both have. `own` is true if the
row's `metadata` are those of the message. By construction
`restored(plain, remainder(row, plain)) == row`, whatever the converter understands. Remainders are stored in the
metadata of messages and parts, under the name of the format.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from conversations.content.flattening import flattened
from conversations.content.json_values import NOUNS, noun_of
from conversations.content.tokens import SHORTEST_DATA
from conversations.types import MessageRecord, NewMessage, NewPart, PartType

# The media type and the base64 of an attachment in a data URL.
DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)
# Replaces a missing time in a plain form. No row contains this text, so the remainder records that the row's time was
# missing or null: the store fills it in.
NO_TIME = "the time of recording"
_KEYS = {"add": dict, "drop": list, "inside": dict, "own": bool}
# Keys of values that are no words. Keys that end in `_id` and long encoded data are no words, either.
_WORDLESS = frozenset(
    {"type", "role", "id", "data", "format", "media_type", "signature", "encrypted_content", "cache_control"}
)
_ENCODED = re.compile(rf"(?:data:[^,]*,)?[A-Za-z0-9+/=_-]{{{SHORTEST_DATA},}}")
_Noted = TypeVar("_Noted", NewMessage, NewPart)


def is_bookkeeping(part: NewPart) -> bool:
    """Whether compaction added this part for its own bookkeeping."""
    return part.part_type is PartType.COMPACTION and bool(part.is_synthetic and part.is_ignored)


def as_it_came(record: MessageRecord) -> MessageRecord:
    """Return the message without parts that compaction added to it."""
    if not any(map(is_bookkeeping, record.parts)):
        return record
    return replace(record, parts=tuple(part for part in record.parts if not is_bookkeeping(part)))


def with_synthetic(message: NewMessage, is_added: Callable[[str], bool]) -> NewMessage:
    """Mark texts that a program wrote in the user's place as synthetic."""
    marked = tuple(
        replace(part, is_synthetic=True)
        if part.part_type is PartType.TEXT and is_added(part.text_content or "")
        else part
        for part in message.parts
    )
    return message if marked == message.parts else replace(message, parts=marked)


@dataclass(frozen=True)
class Fields:
    """The fields of an object in a row; ValueError names the field that is wrong."""

    values: Mapping[str, Any]
    # The path of the object in the row, such as `content[0].`.
    where: str = ""

    @classmethod
    def of(cls, row: Any) -> Fields:
        """Return the fields of a message."""
        if not isinstance(row, Mapping):
            raise ValueError(f"A message must be an object, not {noun_of(row)}.")
        return cls(row)

    def read(self, key: str, kind: type) -> Any:
        """Return the value under the key, or None; ValueError for another type."""
        value = self.values.get(key)
        if value is not None and type(value) is not kind:
            raise ValueError(f"{self.where}{key} must be {NOUNS[kind]}, not {noun_of(value)}.")
        return value

    def text(self, key: str) -> str | None:
        text: str | None = self.read(key, str)
        return text

    def required_text(self, key: str) -> str:
        if (text := self.text(key)) is None:
            raise ValueError(f"{self.where}{key} must be given.")
        return text

    def content(self) -> str | list[Any]:
        content = self.values.get("content")
        if not isinstance(content, str | list):
            raise ValueError(f"{self.where}content must be a text or a list, not {noun_of(content)}.")
        return content

    def inner(self, key: str) -> Fields:
        """Return the fields of the object under the key; an absent one has none."""
        return Fields(self.read(key, dict) or {}, f"{self.where}{key}.")

    def objects(self, key: str) -> tuple[Fields, ...]:
        """Return the fields of each object in a list; an absent list has none."""
        values = self.read(key, list) or ()
        for place, value in enumerate(values):
            if not isinstance(value, dict):
                raise ValueError(f"{self.where}{key}[{place}] must be an object, not {noun_of(value)}.")
        return tuple(Fields(value, f"{self.where}{key}[{place}].") for place, value in enumerate(values))

    def choice(self, key: str, choices: Mapping[str, Any]) -> Any:
        """Return the choice for the text under the key; ValueError if there is none."""
        value = self.values.get(key)
        if not isinstance(value, str) or value not in choices:
            shown = repr(value[:80]) if isinstance(value, str) else noun_of(value)
            raise ValueError(f"{self.where}{key} must be one of {', '.join(choices)}, not {shown}.")
        return choices[value]

    def moment(self, key: str) -> datetime | None:
        """Return the time under the key; a time without a zone is read as UTC."""
        if (text := self.text(key)) is None:
            return None
        try:
            found = datetime.fromisoformat(text)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError(f"{self.where}{key} must be a time as ISO 8601 writes it, not {text[:80]!r}.") from None


def written(moment: datetime | None) -> str | None:
    """Format a time in UTC, with as many digits as it needs."""
    if moment is None:
        return None
    precision = "seconds" if not moment.microsecond else "milliseconds" if not moment.microsecond % 1000 else "auto"
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def timestamp_of(moment: datetime | None) -> str:
    """Format a time; None becomes NO_TIME."""
    return written(moment) or NO_TIME


def remainder(row: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return what turns `plain` into `row`; empty if they are the same."""
    add: dict[str, Any] = {}
    inside: dict[str, Any] = {}
    for key, value in row.items():
        known = plain.get(key)
        if key in plain and _same(value, known):
            continue
        if isinstance(value, dict) and isinstance(known, dict):
            inside[key] = remainder(value, known)
        else:
            add[key] = value
    drop = [key for key in plain if key not in row]
    return {key: value for key, value in (("add", add), ("drop", drop), ("inside", inside)) if value}


def restored(plain: Mapping[str, Any], rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row with this plain form and remainder."""
    dropped = set(rest.get("drop", ()))
    row = {key: value for key, value in plain.items() if key not in dropped}
    for key, deeper in rest.get("inside", {}).items():
        known = row.get(key)
        row[key] = restored(known if isinstance(known, dict) else {}, deeper)
    return row | rest.get("add", {})


def is_remainder(value: Any) -> bool:
    """Whether this can be a remainder: callers may use the same metadata key."""
    return (
        isinstance(value, dict)
        and bool(value)
        and all(key in _KEYS and isinstance(each, _KEYS[key]) for key, each in value.items())
        and all(isinstance(key, str) for key in value.get("drop", ()))
        and all(is_remainder(each) for each in value.get("inside", {}).values())
    )


def split_remainder(metadata: Any, name: str) -> tuple[Any, dict[str, Any]]:
    """Return the metadata without the format's remainder, and the remainder."""
    if not isinstance(metadata, Mapping) or not is_remainder(metadata.get(name)):
        return metadata, {}
    return {key: value for key, value in metadata.items() if key != name}, metadata[name]


def with_remainder(value: _Noted, name: str, row: Mapping[str, Any], plain: Mapping[str, Any] | None) -> _Noted:
    """Store a row's remainder in the metadata of its message or part."""
    rest = remainder(row, plain or {})
    return replace(value, metadata={**(value.metadata or {}), name: rest}) if rest else value


def with_row_metadata(
    message: NewMessage, name: str, row: Mapping[str, Any], plain: Mapping[str, Any], metadata: Mapping[str, Any]
) -> NewMessage:
    """Store the metadata of a row, and its remainder, in those of its message."""
    if not metadata or name in metadata:
        return with_remainder(message, name, row, plain)
    rest = remainder({key: value for key, value in row.items() if key != "metadata"}, plain)
    return replace(message, metadata={**metadata, name: {**rest, "own": True}})


def with_kept(plain: Mapping[str, Any], metadata: Any, name: str) -> dict[str, Any]:
    """Restore a row from its plain form and the remainder in the metadata."""
    others, rest = split_remainder(metadata, name)
    return restored({**plain, "metadata": others} if rest.get("own") else plain, rest)


def metadata_value(part: NewPart, name: str) -> Any:
    """Return the value that a format stores under a key of a part's metadata."""
    return part.metadata.get(name) if isinstance(part.metadata, Mapping) else None


def with_key(part: NewPart, name: str, value: Any) -> NewPart:
    return replace(part, metadata={**(part.metadata or {}), name: value})


def a_call(call_id: str | None, name: str | None, value: Any, **more: Any) -> NewPart:
    return NewPart(PartType.TOOL, tool_call_id=call_id, tool_name=name, tool_input=value, tool_status="pending", **more)


def a_result(text: str, *, call_id: str | None, name: str | None = None, is_error: bool = False) -> NewPart:
    part = NewPart(PartType.TOOL, tool_call_id=call_id, tool_name=name)
    if is_error:
        return replace(part, tool_status="error", tool_error=text)
    return replace(part, tool_status="completed", tool_output=text)


def as_results(parts: Iterable[NewPart], answer: Callable[[str], NewPart]) -> tuple[NewPart, ...]:
    """Turn TEXT parts of a tool's message into results; other parts stay."""
    return tuple(
        replace(answer(part.text_content or ""), metadata=part.metadata) if part.part_type is PartType.TEXT else part
        for part in parts
    )


def is_result(part: NewPart) -> bool:
    return part.part_type is PartType.TOOL and (part.tool_output is not None or part.tool_error is not None)


def result_text(part: NewPart) -> str | None:
    return part.tool_output if part.tool_error is None else part.tool_error


def block_of_words(block: Mapping[str, Any]) -> NewPart:
    """Read a block of an unknown type: a text of its words, else an empty file."""
    words: list[str] = []
    waiting: list[Any] = [block]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            named = [key for key in each if key not in _WORDLESS and not key.endswith("_id")]
            waiting += [each[key] for key in reversed(named)]
        elif isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, str) and each and not _ENCODED.fullmatch(each):
            words.append(each)
    return NewPart(PartType.TEXT, text_content="\n".join(words)) if words else NewPart(PartType.FILE)


def shown_text(part: NewPart) -> str | None:
    """Return the text of a part where a format allows only text; None if empty."""
    text = part.tool_output if part.part_type is PartType.TOOL else part.text_content
    if part.part_type is PartType.TEXT or (part.part_type is PartType.TOOL and text is not None):
        return text
    return flattened([part]) or None


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal as JSON: true is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, str | int | None):
        return one == other
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
