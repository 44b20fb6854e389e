"""Other values of the type of a column, chosen at random: what a disk, a bug or a person may leave in its place."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from typing import Any

from django.db import connection

# What takes the place of a value: an SQL expression with its parameters.
Value = tuple[str, tuple[Any, ...]]


def another_value(kind: str, text: str | None, enums: Mapping[str, list[str]], chance: random.Random) -> Value:
    """An expression of this type (`udt_name`) that is not NULL; `text` is the value there, as PostgreSQL writes it."""
    if kind in enums:
        return f"%s::{kind}", (chance.choice([label for label in enums[kind] if label != text]),)
    return _KINDS[kind](text, chance)


def _text(text: str | None, chance: random.Random) -> Value:
    if not text:
        return "%s", ("x",)
    at = chance.randrange(len(text))
    flipped = chr(ord(text[at]) ^ 1) or "x"
    flipped = "x" if flipped in ("\x00", text[at]) or 0xD800 <= ord(flipped) <= 0xDFFF else flipped
    return "%s", (chance.choice([text[:at] + flipped + text[at + 1 :], text + "x", text[:-1], ""]),)


def _number(text: str | None, chance: random.Random) -> Value:
    number = int(text or 0)
    return "%s", (chance.choice([number + 1, number - 1, 0, -1, chance.randrange(2**31 - 1)]),)


def _moment(text: str | None, chance: random.Random) -> Value:
    by = chance.choice(["1 microsecond", "-1 microsecond", "1 second", "-3 days", "1 year"])
    return "coalesce(%s::timestamptz, now()) + %s::interval", (text, by)


def _json(text: str | None, chance: random.Random) -> Value:
    value = json.loads(text) if text else {}
    if isinstance(value, dict):
        made = chance.choice([{**value, "x": 1}, dict(list(value.items())[1:]), {}])
    elif isinstance(value, list):
        made = chance.choice([[*value, 1], value[1:], []])
    else:
        made = [value]
    return "%s", (json.dumps(made),)


def _ordered_json(text: str | None, chance: random.Random) -> Value:
    """Of a `json` column, which keeps the order of keys: sometimes only that is another."""
    value = json.loads(text) if text else {}
    # The order of the columns that it holds does not matter, that of the keys within them does.
    for name, each in value.items():
        if chance.random() < 0.5 and (turned := _turned(each)) is not None:
            return "%s", (json.dumps(value | {name: turned}),)
    return _json(text, chance)


def _turned(value: Any) -> Any:
    """The first object with several keys has them the other way round; None if there is none."""
    if isinstance(value, dict):
        if len(value) > 1:
            return dict(reversed(value.items()))
        for key, each in value.items():
            if (turned := _turned(each)) is not None:
                return {key: turned}
    return None


def _bytes(text: str | None, chance: random.Random) -> Value:
    value = bytearray.fromhex((text or "")[2:])
    if not value:
        return "%s", (b"x",)
    value[chance.randrange(len(value))] ^= 1 << chance.randrange(8)
    return "%s", (chance.choice([bytes(value), bytes(value[:-1]), b""]),)


def _array(element: str) -> Callable[[str | None, random.Random], Value]:
    def make(text: str | None, chance: random.Random) -> Value:
        return chance.choice(
            [
                (f"coalesce(%s::{element}[], '{{}}') || %s::{element}", (text, "7")),
                (f"%s::{element}[]", ("{}",)),
                (f"(coalesce(%s::{element}[], '{{}}'))[2:]", (text,)),
            ]
        )

    return make


_KINDS: Mapping[str, Callable[[str | None, random.Random], Value]] = {
    "text": _text,
    "varchar": _text,
    "int2": lambda text, chance: ("%s", (int(text or 0) + 1,)),
    "int4": _number,
    "int8": _number,
    "xid8": lambda text, chance: ("%s::text::xid8", (str(int(text or 0) + 1),)),
    "bool": lambda text, chance: ("%s", (text != "true",)),
    "float8": lambda text, chance: ("%s", (float(text or 0) + chance.choice([1.0, 1e-9, -0.5]),)),
    "numeric": lambda text, chance: ("%s::text::numeric", (f"{text or 0}1",)),
    "timestamptz": _moment,
    "date": lambda text, chance: ("%s::date + 1", (text,)),
    "jsonb": _json,
    "json": _ordered_json,
    "bytea": _bytes,
    "_text": _array("text"),
    "_int8": _array("bigint"),
    "inet": lambda text, chance: ("%s::inet", ("10.0.0.1",)),
    "tsvector": lambda text, chance: ("%s::tsvector", ("another",)),
}


def enum_labels() -> dict[str, list[str]]:
    """The values of every enum type."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.typname, array_agg(e.enumlabel::text ORDER BY e.enumsortorder)"
            " FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid GROUP BY t.typname"
        )
        return dict(cursor.fetchall())
