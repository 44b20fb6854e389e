"""The fields that params are made of: what a value of each kind is, in JSON and where everything is a text.

A text, a word or a number with which nothing is wrong is taken at a glance, as nearly all are: DRF's own way, which
writes the refusals, asks a dozen questions of each, and one of every character.
"""

from __future__ import annotations

import base64
import math
import re
from datetime import UTC, datetime
from typing import Any, NoReturn

from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty

from conversations.formats.fields import noun_of
from conversations.policy import conversation_knobs

# The largest number that a bigint column holds.
MOST = 2**63 - 1

# One way to write each number: 1.0, +1, 01 and 1_0 would be other names for what has one.
_WHOLE = re.compile(r"0|-?[1-9][0-9]*")
_NUMBER = re.compile(r"-?[0-9]{1,400}(\.[0-9]{1,400})?(e[+-]?[0-9]{1,3})?", re.IGNORECASE)
_SHA256 = re.compile(r"[0-9A-Fa-f]{64}")
MOST_DIGITS = 1000
_BOUNDS: dict[str, Any] = {
    "min_value": "This must be {min_value} at least.",
    "max_value": "This may be {max_value} at most.",
}
# The largest number up to which a double knows every whole one.
MOST_EXACT = 2.0**53


class Readable:
    """A field of what JSON does not write as a text, and which yet has to be read from one here and there."""

    def read(self, text: str) -> Any:
        """What the text means; the text itself if it means nothing."""
        raise NotImplementedError


class Text(serializers.CharField):
    """A text as it is: blanks at its ends stay, and a number is not one."""

    default_error_messages = {"max_length": "This may have {max_length} characters at most."}

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"trim_whitespace": False, **options})

    def run_validation(self, data: Any = empty) -> Any:
        # What can be printed has no NUL and no lone surrogate.
        if type(data) is str and data.isprintable() and 0 < len(data) <= (self.max_length or MOST):
            return data
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            _refuse(f"This must be a text, not {noun_of(data)}.")
        return super().to_internal_value(data)


class Sha256(Text):
    """A SHA-256 in hex, as every tool writes it."""

    # Not every text that can be printed is one.
    run_validation = serializers.CharField.run_validation

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not _SHA256.fullmatch(text):
            _refuse(f"This must be 64 hexadecimal digits, not {text[:80]!r}.")
        return text


class WholeNumber(Readable, serializers.IntegerField):
    """A whole number; by default one that a row can be numbered with."""

    default_error_messages = _BOUNDS

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": MOST, **options})

    def run_validation(self, data: Any = empty) -> Any:
        least, most = self.min_value, self.max_value
        if type(data) is int and (least is None or data >= least) and (most is None or data <= most):
            return data
        return super().run_validation(data)

    def read(self, text: str) -> int | str:
        # Longer ones take Python longer and longer, until it refuses in words of its own.
        return int(text) if len(text) <= MOST_DIGITS and _WHOLE.fullmatch(text) else text

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer() and abs(data) <= MOST_EXACT:
            # JSON knows one kind of number: to many a writer, 7.0 is 7.
            return int(data)
        if type(data) is not int:
            _refuse(f"This must be a whole number{_otherwise(self, data)}.")
        return data


class Number(Readable, serializers.FloatField):
    """A number, whole or not."""

    default_error_messages = _BOUNDS

    def read(self, text: str) -> float | str:
        return float(text) if _NUMBER.fullmatch(text) else text

    def to_internal_value(self, data: Any) -> float:
        if type(data) not in (int, float):
            _refuse(f"This must be a number{_otherwise(self, data)}.")
        try:
            number = float(data)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            _refuse("This is too large a number.")
        return number


class Flag(Readable, serializers.BooleanField):
    """True or false, in JSON as in a query."""

    def read(self, text: str) -> bool | str:
        return {"true": True, "false": False}.get(text.lower(), text)

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            _refuse(f"This must be true or false{_otherwise(self, data)}.")
        return data


def _otherwise(field: Readable, data: Any) -> str:
    """What is there instead, for a sentence about it."""
    if isinstance(data, float):
        return f", not {data}"
    if isinstance(data, str) and field.read(data) is data:
        in_digits = "" if isinstance(field, Flag) else " in plain digits"
        return f"{in_digits}, not {data[:40]!r}"
    return f", not {noun_of(data)}"


class Id(WholeNumber):
    """A row's number. One that no row could have is not refused here: it is as unknown as any other."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"max_value": None, **options})


class ConversationId(Id):
    """The number of a conversation."""

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, str):
            where = "conversations/find/?session_id=... tells that of a session"
            _refuse(f"This must be a conversation's number{_otherwise(self, data)}; {where}.")
        return super().to_internal_value(data)


class MessageId(Id):
    """The number of a message, bare or as `msg_12`."""

    def read(self, text: str) -> int | str:
        return super().read(text.removeprefix("msg_"))

    def to_internal_value(self, data: Any) -> int:
        # A text in JSON, too: ids of several kinds are told apart by how they begin.
        is_text = isinstance(data, str) and data.startswith("msg_")
        return super().to_internal_value(self.read(data) if is_text else data)


class Choice(serializers.ChoiceField):
    """One of a few words; a refusal names them all."""

    def run_validation(self, data: Any = empty) -> Any:
        if type(data) is str and data in self.choice_strings_to_values:
            return self.choice_strings_to_values[data]
        return super().run_validation(data)

    def to_internal_value(self, data: Any) -> Any:
        try:
            return super().to_internal_value(data)
        except ValidationError:
            shown = repr(data[:40]) if isinstance(data, str) else noun_of(data)
            _refuse(f"{shown} is none of {', '.join(self.choices)}.")


class Several(serializers.ListField):
    """A few short values; where there are no lists, they are separated by commas or said one by one."""

    default_error_messages = {
        "not_a_list": "This must be a list.",
        "max_length": "This may have {max_length} values at most.",
    }


class Moment(serializers.Field):
    """A moment in ISO 8601; one without a time zone is of UTC, a day is its beginning."""

    def to_internal_value(self, data: Any) -> datetime:
        if not isinstance(data, str):
            _refuse(f"This must be a moment in ISO 8601, not {noun_of(data)}.")
        try:
            moment = datetime.fromisoformat(data)
            return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (ValueError, OverflowError):
            _refuse(f"This must be a moment in ISO 8601, such as 2026-01-31T09:00:00Z, not {data[:40]!r}.")


class JsonObject(serializers.Field):
    """A JSON object, kept as it is."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            _refuse(f"This must be an object, not {noun_of(data)}.")
        return data


class Overrides(JsonObject):
    """Settings of a conversation, by their names. In the environment all are texts; here, only those that are texts."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        given = super().to_internal_value(data)
        for name, (_, kind) in conversation_knobs().items():
            if name in given and not _is_of(kind, given[name]):
                _refuse(f"{name} must be {_KINDS[kind]}, not {noun_of(given[name])}.")
        return given


_KINDS = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def _is_of(kind: type, value: Any) -> bool:
    if kind is float or (isinstance(value, float) and value.is_integer()):
        return type(value) in (int, float) and kind in (int, float)
    return type(value) is kind


class MessageList(serializers.Field):
    """Messages as a list of plain objects, which the reader of their format makes records of."""

    def to_internal_value(self, data: Any) -> list[Any]:
        if not isinstance(data, list):
            _refuse(f"This must be a list of messages, not {noun_of(data)}.")
        return data


class Bytes(serializers.Field):
    """Bytes, which JSON cannot say, as base64; as they are, where something else than JSON brings them."""

    def to_internal_value(self, data: Any) -> bytes:
        if isinstance(data, bytes):
            return data
        if not isinstance(data, str):
            _refuse(f"This must be bytes as base64, not {noun_of(data)}.")
        try:
            return base64.b64decode(data, validate=True)
        except ValueError:
            _refuse("This is not base64.")


def _refuse(sentence: str) -> NoReturn:
    raise ValidationError([sentence])
