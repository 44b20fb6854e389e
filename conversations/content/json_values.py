"""Pydantic types for values in JSON: numbers, prices, times and names. Pure."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator, Strict, WithJsonSchema

from conversations.content.lossless_values import MAX_NAME, NO_NUL

# Up to this number, a double represents every integer exactly.
MOST_EXACT = 2.0**53
NOUNS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "null",
}


def noun_of(value: Any) -> str:
    return next((noun for kind, noun in NOUNS.items() if type(value) is kind), type(value).__name__)


def whole_number(value: Any) -> Any:
    """Return 7 for 7.0, as JSON has one kind of number; other values unchanged."""
    is_whole = type(value) is float and value.is_integer() and abs(value) <= MOST_EXACT
    return int(value) if is_whole else value


def price(value: Any) -> Any:
    """Parse a price, given as a number or as a text with all its digits."""
    if isinstance(value, Decimal):
        return value
    if type(value) not in (int, float, str):
        raise ValueError(f"This must be a number, not {noun_of(value)}.")
    with suppress(InvalidOperation):
        amount = Decimal(str(value))
        if amount.is_finite():
            return amount
    raise ValueError(f"{str(value)[:80]!r} is not a number.")


def zoned_moment(value: Any) -> Any:
    """Parse a time in ISO 8601 with its zone; ValueError if it is invalid."""
    if isinstance(value, datetime):
        return value
    if type(value) is not str:
        raise ValueError(f"This must be a text, not {noun_of(value)}.")
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError(f"{value[:80]!r} is not a time in ISO 8601, such as 2026-01-31T12:00:00Z.") from None
    if moment.tzinfo is None:
        raise ValueError("The time needs its zone, such as a Z at its end.")
    return moment


# The store checks names itself: not every message comes through an interface that validates it.
NAME_SCHEMA = {"type": "string", "minLength": 1, "maxLength": MAX_NAME, "pattern": NO_NUL}
Name = Annotated[str, WithJsonSchema(NAME_SCHEMA)]
Flag = Annotated[bool, Strict()]
Int32 = Annotated[
    int,
    Strict(),
    BeforeValidator(whole_number),
    WithJsonSchema({"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1}),
]
Price = Annotated[
    Decimal,
    BeforeValidator(price),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number"},
                {"type": "string", "format": "decimal", "pattern": r"^-?[0-9]{1,100}(\.[0-9]{1,100})?$"},
            ]
        },
        mode="validation",
    ),
]
Moment = Annotated[
    datetime,
    BeforeValidator(zoned_moment),
    WithJsonSchema({"type": "string", "format": "date-time"}, mode="validation"),
]
