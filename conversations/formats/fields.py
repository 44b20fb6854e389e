"""Reading fields of foreign rows: a value of the right kind, or a sentence that names the field. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from conversations.content.json_values import NOUNS, noun_of

# The media type and the base64 of an attachment that is its own address.
DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


def read(row: Mapping[str, Any], key: str, kind: type, *, where: str = "") -> Any:
    """The value under the key, None if it is null or absent; ValueError if it is of another kind."""
    value = row.get(key)
    if value is not None and type(value) is not kind:
        raise ValueError(f"{where}{key} must be {NOUNS[kind]}, not {noun_of(value)}.")
    return value


def objects(values: Any, *, where: str) -> list[dict[str, Any]]:
    """The list's members, each an object; an absent list has none."""
    for place, value in enumerate(values or ()):
        if not isinstance(value, dict):
            raise ValueError(f"{where}[{place}] must be an object, not {noun_of(value)}.")
    return list(values or ())


def as_message(row: Any) -> Mapping[str, Any]:
    if not isinstance(row, Mapping):
        raise ValueError(f"A message must be an object, not {noun_of(row)}.")
    return row


def choice(value: Any, choices: Any, *, field: str) -> Any:
    """What the choices map this text to; ValueError, with the choices, if it is none of them."""
    if not isinstance(value, str) or value not in choices:
        shown = repr(value[:80]) if isinstance(value, str) else noun_of(value)
        raise ValueError(f"{field} must be one of {', '.join(choices)}, not {shown}.")
    return choices[value]


def moment(row: Mapping[str, Any], key: str) -> datetime | None:
    """The time under the key, without a zone taken as UTC; None if it is null or absent; ValueError if it is none."""
    text = read(row, key, str)
    if text is None:
        return None
    try:
        told = datetime.fromisoformat(text)
        return (told if told.tzinfo else told.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError(f"{key} must be a time as ISO 8601 writes it, not {text[:80]!r}.") from None


def written(moment: datetime | None) -> str | None:
    """The time in UTC, as precise as it has to be, in the way most others write it."""
    if moment is None:
        return None
    precision = "seconds" if not moment.microsecond else "milliseconds" if not moment.microsecond % 1000 else "auto"
    return moment.astimezone(UTC).isoformat(timespec=precision).replace("+00:00", "Z")


def timestamp_of(moment: datetime | None) -> str:
    """The time as a format says it that may leave it out: the store fills it in, and its remainder must tell that."""
    return written(moment) or "the time of recording"
