"""Keep the exact values that their columns cannot hold, as ASCII JSON. Pure.

PostgreSQL's text type refuses NUL and lone surrogates. jsonb also reorders keys and rewrites numbers. For such a value
the column holds a substitute that can be read and searched, and the row's `exact` column holds the value itself.
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

# jsonb returns all integers unchanged, but not all other numbers. Integers of more bits go into `exact` nevertheless:
# Python refuses to print very large ones, and this error must occur while the message can still be refused.
MOST_BITS = 1000
# Maximum depth of nested lists and objects. Any JSON parser and Python's recursion limit allow it, so everything that
# was stored can be read, written and restored.
MOST_LEVELS = 200
# Maximum number of digits before or after the decimal point. Written out, 1e999999999 would fill the memory.
MOST_DIGITS = 500


def storable(text: str) -> str:
    """Replace each character that PostgreSQL text cannot hold."""
    return _UNSTORABLE.sub(REPLACEMENT, text)


def is_storable(text: str) -> bool:
    # Most texts are ASCII, for which `isascii` is constant time; the regular expression scans the whole text.
    return "\x00" not in text and (text.isascii() or _UNSTORABLE.search(text) is None)


def is_name(text: str | None) -> bool:
    """Whether this text is a valid name: 1 to MAX_NAME storable characters."""
    return text is not None and 1 <= len(text) <= MAX_NAME and is_storable(text)


def require_names(**texts: str | None) -> None:
    """Raise Invalid for a text that is not a valid name; None is accepted."""
    for field, text in texts.items():
        if text is not None and not is_name(text):
            raise Invalid(f"{field} must be 1 to {MAX_NAME} characters without NUL or lone surrogates.")


def is_bounded_decimal(number: Decimal) -> bool:
    """Whether a decimal number is finite and of a size that can be stored."""
    return number.is_finite() and abs(number.adjusted()) < MOST_DIGITS


def storable_json(value: Any) -> Any:
    """Return the value with all its texts, and its keys, made storable."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(str(key)): storable_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(storable_json(each) for each in value)
    return value


def is_plain(value: Any) -> bool:
    """Whether jsonb can hold all its texts and keys, and MOST_LEVELS is respected."""
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

    Exact values are as JSON returns them: tuples become lists, and two adjacent surrogates become one character. Raises
    ValueError for a value that JSON cannot represent, or that is nested in more than MOST_LEVELS levels.
    """
    columns = dict(values)
    for name in JSON_COLUMNS & values.keys():
        if is_deeper(values[name], MOST_LEVELS):
            raise ValueError(f"{name} is nested too deeply: it may have {MOST_LEVELS} levels.")
    try:
        exact = {
            name: value
            for name, value in values.items()
            # Most are ASCII texts without NUL, which need no further check.
            if not (isinstance(value, str) and value.isascii() and "\x00" not in value)
            and not _is_held(value, as_json=name in JSON_COLUMNS)
        }
        if not exact:
            return columns, exact
        for name, value in exact.items():
            # For a list, this covers each of its texts.
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
    """Whether a column, jsonb if `as_json`, returns the value unchanged."""
    if as_json:
        return survives_jsonb(value)
    if isinstance(value, str):
        return is_storable(value)
    return not isinstance(value, list | tuple) or all(is_storable(each) for each in value)


def as_json(rows: Any) -> str:
    """Serialize rows, or one, for the database."""
    try:
        return orjson.dumps(rows).decode()
    except TypeError:
        # A number of more than 64 bits.
        return json.dumps(rows, ensure_ascii=False)
