"""Frozen records by the thousand. Pure."""

from __future__ import annotations

from typing import Any, TypeVar

R = TypeVar("R")


def record(kind: type[R], values: dict[str, Any]) -> R:
    """A frozen record of values for all of its fields; the dictionary becomes the record's own.

    Made past the constructor, which sets the fields of a frozen record one by one: of a part's thirty, that takes ten
    times as long, and a page has a thousand parts.
    """
    made = object.__new__(kind)
    object.__setattr__(made, "__dict__", values)
    return made
