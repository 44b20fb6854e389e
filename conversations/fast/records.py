"""Build frozen dataclasses without their constructor. Pure."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar

R = TypeVar("R")
_new, _set = object.__new__, object.__setattr__


def record(kind: type[R], values: dict[str, Any]) -> R:
    """A frozen record of these values, in the order of its fields; the dictionary becomes the record's own.

    A field that is not given has its default, which the class holds. The constructor of a frozen class sets its fields
    one by one, and a page has a thousand parts of thirty fields.
    """
    made = _new(kind)
    _set(made, "__dict__", values)
    return made


def every_field(record: Any) -> dict[str, Any]:
    """All values of a record by field, in order, those too that it has only from its class."""
    values: dict[str, Any] = record.__dict__
    kind: Any = type(record)
    everything = _defaults(kind)
    return values if len(values) == len(everything) else everything | values


@cache
def _defaults(kind: type[Any]) -> dict[str, Any]:
    return {each.name: None if each.default is MISSING else each.default for each in fields(kind)}
