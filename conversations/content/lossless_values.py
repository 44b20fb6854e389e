"""Keep values that a column cannot hold exactly beside it, as ASCII JSON.

PostgreSQL's text refuses NUL and lone surrogates; jsonb besides reorders keys and rewrites numbers. For such a value
the column holds a stand-in that can be read and searched, and the row's `exact` column holds the value itself. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import orjson

from conversations.errors import Invalid

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
REPLACEMENT = "\ufffd"
# The columns of messages and parts that hold JSON.
JSON_COLUMNS = frozenset({"tool_input", "metadata"})
MAX_NAME = 500
# A regular expression of JSON Schema: PostgreSQL's text has no NUL.
NO_NUL = "^[^\\u0000]*$"

# jsonb keeps numbers as numeric: whole numbers come back as they went in, others only mostly. Far larger ones may be
# more than Python agrees to write out; that has to show while the message can still be refused.
MOST_BITS = 1000
# Lists and objects in each other. So far any reader of JSON goes down, and every Python by recursion, wherever that
# starts: what was stored can be read, written and restored.
MOST_LEVELS = 200
# Digits of a decimal number before its point or behind it. Written out, 1e999999999 would fill the memory.
MOST_DIGITS = 500


def storable(text: str) -> str:
    """Replace each character that PostgreSQL text cannot hold."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def is_storable(text: str) -> bool:
    # Most texts are ASCII, which a string knows of itself: the regular expression would look at every character.
    return "\x00" not in text and (text.isascii() or _UNSTORABLE.search(text) is None)


def is_name(text: str | None) -> bool:
    """Whether a column that is compared can hold this text exactly."""
    return text is not None and 1 <= len(text) <= MAX_NAME and is_storable(text)


def require_names(**texts: str | None) -> None:
    """Raise Invalid for a text that is no name; None is none given."""
    for field, text in texts.items():
        if text is not None and not is_name(text):
            raise Invalid(f"{field} must be 1 to {MAX_NAME} characters without NUL or lone surrogates.")


def is_bounded_decimal(number: Decimal) -> bool:
    """Whether a decimal number is finite and of a size that can be stored."""
    return number.is_finite() and abs(number.adjusted()) < MOST_DIGITS


def storable_json(value: Any) -> Any:
    """The value with every text in it, keys too, made storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(str(key)): storable_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(storable_json(each) for each in value)
    return value


def is_plain(value: Any) -> bool:
    """Whether jsonb holds every text in it, keys too, and it has at most MOST_LEVELS."""
    return not is_deeper(value, MOST_LEVELS) and storable_json(value) == value


def survives_jsonb(value: Any) -> bool:
    """Whether jsonb returns the value unchanged: key order, numbers, characters."""
    if isinstance(value, str):
        return is_storable(value)
    if isinstance(value, dict):
        # jsonb puts short keys first, and those of one length in the order of their bytes.
        before = (-1, b"")
        for key, each in value.items():
            if not (isinstance(key, str) and is_storable(key)):
                return False
            encoded = key.encode()
            if not (before < (before := (len(encoded), encoded)) and survives_jsonb(each)):
                return False
        return True
    if isinstance(value, list):
        return all(survives_jsonb(each) for each in value)
    if isinstance(value, int):
        return value.bit_length() <= MOST_BITS
    return value is None


def split(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split values into what columns can hold, and the exact values of the rest.

    JSON knows no tuples, and two halves of a surrogate pair side by side are the character they make. Raises ValueError
    for a value that JSON cannot say at all, or that has more than MOST_LEVELS of lists and objects in each other.
    """
    columns = dict(values)
    for name in JSON_COLUMNS & values.keys():
        if is_deeper(values[name], MOST_LEVELS):
            raise ValueError(f"{name} is nested too deeply: it may have {MOST_LEVELS} levels.")
    try:
        exact = {
            name: value
            for name, value in values.items()
            # Most are plain texts, which need no further question.
            if not (isinstance(value, str) and value.isascii() and "\x00" not in value)
            and not _is_held(value, as_json=name in JSON_COLUMNS)
        }
        if not exact:
            return columns, exact
        for name, value in exact.items():
            # Of a list, too, each text is made storable.
            columns[name] = storable_json(value)
        return columns, json.loads(json.dumps(exact, allow_nan=False))
    except TypeError as wrong:
        raise ValueError(f"A value is none that JSON has: {wrong}.") from None


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and objects have more levels than these, without recursion."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [
            inner
            for each in layer
            if isinstance(each, dict | list | tuple)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not layer:
            return False
    return True


def _is_held(value: Any, *, as_json: bool) -> bool:
    """Whether a column gives the value back as it is: of JSON, or of another type."""
    if as_json:
        return survives_jsonb(value)
    if isinstance(value, str):
        return is_storable(value)
    return not isinstance(value, list | tuple) or all(is_storable(each) for each in value)


def overlaid(columns: dict[str, Any], exact: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns with what `exact` knows better."""
    return {**columns, **exact} if exact else columns


def as_json(rows: Any) -> str:
    """Serialize rows, or one, for the database."""
    try:
        return orjson.dumps(rows).decode()
    except TypeError:
        # A number of more than 64 bits.
        return json.dumps(rows, ensure_ascii=False)
