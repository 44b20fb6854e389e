"""Locate values in a JSON text, to replace parts of it in place. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_BLANK = re.compile(r"[ \t\n\r]*")
_decode = json.JSONDecoder().raw_decode


class Span(NamedTuple):
    """A value, and the positions where its text begins and ends."""

    start: int
    end: int
    value: Any


def members(text: str) -> dict[str, Span]:
    """Locate the members of a JSON object. Raises ValueError for any other text.

    A duplicate key is refused: parsers differ in which of the two they take.
    """
    index = _index_after(text, 0, "{")
    found: dict[str, Span] = {}
    while text[index : index + 1] != "}":
        if found:
            index = _index_after(text, index, ",")
        key = _parse_value(text, index)
        if not isinstance(key.value, str) or key.value in found:
            raise ValueError("A key is no string, or comes twice.")
        value = _parse_value(text, _index_after(text, key.end, ":"))
        found[key.value] = value
        index = _skip_blanks(text, value.end)
    if _skip_blanks(text, index + 1) != len(text):
        raise ValueError("Something follows the object.")
    return found


def elements(text: str, array: Span) -> list[Span]:
    """Locate the elements of an array in the text."""
    index = _index_after(text, array.start, "[")
    found: list[Span] = []
    while text[index] != "]":
        if found:
            index = _index_after(text, index, ",")
        found.append(_parse_value(text, index))
        index = _skip_blanks(text, found[-1].end)
    return found


def _parse_value(text: str, index: int) -> Span:
    try:
        value, end = _decode(text, index)
    except RecursionError:
        raise ValueError("The text has too many levels.") from None
    return Span(index, end, value)


def _skip_blanks(text: str, index: int) -> int:
    found = _BLANK.match(text, index)
    assert found is not None
    return found.end()


def _index_after(text: str, index: int, sign: str) -> int:
    """Return the index of the next value after this character. Raises ValueError."""
    index = _skip_blanks(text, index)
    if text[index : index + 1] != sign:
        raise ValueError(f"There is no {sign} at character {index}.")
    return _skip_blanks(text, index + 1)
