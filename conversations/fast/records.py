"""Build frozen dataclasses without their constructor. Pure."""

from __future__ import annotations

from dataclasses import MISSING, fields
from functools import cache
from typing import Any, TypeVar

R = TypeVar("R")


def record(kind: type[R], values: dict[str, Any]) -> R:
    """Build a frozen record of these values; other fields get their defaults.

    The constructor of a frozen class sets its fields one by one, and a page has a thousand parts of thirty fields.
    """
    made = object.__new__(kind)
    object.__setattr__(made, "__dict__", {**_defaults(kind), **values})  # type: ignore[arg-type]
    return made


@cache
def _defaults(kind: type[Any]) -> dict[str, Any]:
    """Return each field's default, in field order, which JSON output follows."""
    return {each.name: None if each.default is MISSING else each.default for each in fields(kind)}
