"""Locate values in a JSON text, to replace parts of it in place. Pure."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_BLANK = re.compile(r"[ \t\n\r]*")
_read = json.JSONDecoder().raw_decode


class Span(NamedTuple):
    """A value, and where its text begins and ends."""

    start: int
    end: int
    value: Any


def members(text: str) -> dict[str, Span]:
    """Locate the members of a JSON object. Raises ValueError if the text is none.

    A duplicate key is refused: parsers differ in which of the two they take.
    """
    place = _after(text, 0, "{")
    found: dict[str, Span] = {}
    while text[place : place + 1] != "}":
        if found:
            place = _after(text, place, ",")
        key = _value(text, place)
        if not isinstance(key.value, str) or key.value in found:
            raise ValueError("A key is no string, or comes twice.")
        value = _value(text, _after(text, key.end, ":"))
        found[key.value] = value
        place = _skip(text, value.end)
    if _skip(text, place + 1) != len(text):
        raise ValueError("Something follows the object.")
    return found


def elements(text: str, array: Span) -> list[Span]:
    """Locate the elements of an array in the text."""
    place = _after(text, array.start, "[")
    found: list[Span] = []
    while text[place] != "]":
        if found:
            place = _after(text, place, ",")
        found.append(_value(text, place))
        place = _skip(text, found[-1].end)
    return found


def _value(text: str, place: int) -> Span:
    try:
        value, end = _read(text, place)
    except RecursionError:
        raise ValueError("The text has too many levels.") from None
    return Span(place, end, value)


def _skip(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    assert found is not None
    return found.end()


def _after(text: str, place: int, sign: str) -> int:
    """Return the place of the next value behind this sign. Raises ValueError."""
    place = _skip(text, place)
    if text[place : place + 1] != sign:
        raise ValueError(f"There is no {sign} at character {place}.")
    return _skip(text, place + 1)
