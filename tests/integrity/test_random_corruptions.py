"""Random single corruptions of every column of every table: the declared invariant finds what is declared to be found.

The declarations in `integrity/column_protection.toml` are the oracle. Whatever is sealed, checked or derived has to be
found by one of the invariants that they name. What the database itself refuses counts as refused.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from integrity.checker import IntegrityChecker
from integrity.column_protection import TABLES, Column, Protection, Table
from tests.integrity.everything import make_everything

SEED = 19
# Rows on which a column cannot be compared with anything, as the declaration's notes say.
ERASED = "erased_by_id IS NOT NULL"
# Of the erased messages of `a_secret_conversation`, this one had an author.
ERASED_WITH_AUTHOR = f"{ERASED} AND seq = 20"
OF_ERASED = "message_id IN (SELECT message_id FROM messages WHERE erased_by_id IS NOT NULL)"
OF_ERASED_SUMMARY = "summary_id IN (SELECT summary_id FROM summaries WHERE erased_by_id IS NOT NULL)"
INCOMPARABLE = (
    ("messages", {"content_hash", "chained_parts", "token_counter"}, ERASED),
    ("messages", {"role"}, ERASED_WITH_AUTHOR),
    ("message_parts", {*TABLES["message_parts"].columns} - {"part_id", "message_id", "session_id"}, OF_ERASED),
    ("summary_messages", {"summary_id", "message_id", "ordinal"}, OF_ERASED_SUMMARY),
    ("summary_parents", {"summary_id", "parent_summary_id", "ordinal"}, OF_ERASED_SUMMARY),
)
# Exchanged between two rows, these may add up to the same.
NOT_EXCHANGED = {("context_items", "token_count")}


@dataclass(frozen=True)
class Place:
    """A column with its type, or with None the removal of a row."""

    table: Table
    column: str | None = None
    kind: str = ""

    @property
    def found_by(self) -> set[str]:
        return set(self.table.removal if self.column is None else self._declared.found_by)

    @property
    def is_demanded(self) -> bool:
        if self.column is None:
            return bool(self.table.removal) and not self.table.removal_note
        return self._declared.protection is not Protection.OPERATIONAL

    @property
    def _declared(self) -> Column:
        return self.table.columns.get(self.column, Column(Protection.OPERATIONAL))

    def __str__(self) -> str:
        return f"{self.table.name}.{self.column or '(row)'}"


class Refused(Exception):
    """The database does not take the value, or there is none to corrupt."""


@pytest.fixture(scope="module")
def everything(module_rows: None, module_files: Path) -> list[Place]:
    make_everything()
    assert found() == set()
    return places()


def places() -> list[Place]:
    """Every column of every table that has rows, and the rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name::text, column_name::text, udt_name::text FROM information_schema.columns"
            " WHERE table_schema = current_schema() ORDER BY 1, ordinal_position"
        )
        columns = [Place(TABLES[table], column, kind) for table, column, kind in cursor.fetchall()]
        filled = []
        for name in {place.table.name: None for place in columns}:
            cursor.execute(f"SELECT EXISTS (SELECT FROM {name})")
            filled += [name] if cursor.fetchone()[0] else []
    return [*(each for each in columns if each.table.name in filled), *(Place(TABLES[name]) for name in filled)]


def found() -> set[str]:
    """The codes of what a whole check finds."""
    return {result.code for result in IntegrityChecker.from_settings().run().broken}


def corrupt(place: Place, labels: dict[str, list[str]], chance: random.Random) -> str:
    """Change one value, or remove one row, past triggers and foreign keys; what was done."""
    name, column = place.table.name, place.column
    conditions = [condition for table, columns, condition in INCOMPARABLE if table == name and column in columns]
    only = f"WHERE NOT ({' OR '.join(conditions)})" if conditions else ""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT ctid::text FROM {name} {only} ORDER BY ctid")
        rows = [row for (row,) in cursor.fetchall()]
        if not rows:
            raise Refused
        row = chance.choice(rows)
        cursor.execute("SET LOCAL session_replication_role = replica")
        try:
            with transaction.atomic():
                if column is None:
                    cursor.execute(f"DELETE FROM {name} WHERE ctid = %s::tid", [row])
                    return "removed"
                return _altered(place, row, chance.choice(rows), labels, chance)
        except DatabaseError as refusal:
            raise Refused(str(refusal).partition("\n")[0]) from refusal
        finally:
            cursor.execute("SET LOCAL session_replication_role = origin")


def _altered(place: Place, row: str, other: str, labels: dict[str, list[str]], chance: random.Random) -> str:
    """Another value in the row's column; Refused if none can be thought of."""
    name, column = place.table.name, place.column
    before, there = _value(name, column, row), _value(name, column, other)
    for _ in range(20):
        way = chance.choice(["value", "value", "value", "NULL", "exchange"])
        if way == "exchange":
            if there != before and (name, column) not in NOT_EXCHANGED:
                _run(
                    f"UPDATE {name} SET {column} = (SELECT o.{column} FROM {name} o"
                    f" WHERE o.ctid = CASE {name}.ctid WHEN %s::tid THEN %s::tid ELSE %s::tid END)"
                    " WHERE ctid IN (%s::tid, %s::tid)",
                    [row, other, row, row, other],
                )
                return f"{before!r:.60} exchanged with {there!r:.60}"
            continue
        expression, values = ("NULL", ()) if way == "NULL" else another_value(place.kind, before, labels, chance)
        [(after, row)] = _run(
            f"UPDATE {name} SET {column} = {expression} WHERE ctid = %s::tid RETURNING {column}::text, ctid::text",
            [*values, row],
        )
        if after != before:
            return f"{before!r:.60} became {after!r:.60}"
    raise Refused


def _value(table: str, column: str | None, row: str) -> str | None:
    return _run(f"SELECT {column}::text FROM {table} WHERE ctid = %s::tid", [row])[0][0]


def _run(statement: str, values: list[object]) -> list[tuple]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchall() if cursor.description else []


def missed(chosen: list[Place]) -> list[str]:
    """Corrupt, check and put back, once for each of these places; return what the declared invariants did not find."""
    chance, labels, found_by_none = random.Random(SEED), enum_labels(), []
    for place in chosen:
        undone = transaction.savepoint()
        try:
            done = corrupt(place, labels, chance)
            codes = found()
        except Refused:
            continue
        finally:
            transaction.savepoint_rollback(undone)
        if place.is_demanded and not codes & place.found_by:
            found_by_none.append(f"{place}: {done}; found by {sorted(codes) or 'nothing'}")
    assert found() == set()
    return found_by_none


def test_a_corruption_in_any_of_twenty_tables_is_found_by_the_declared_invariant(everything):
    chance = random.Random(SEED)
    of_tables: dict[str, list[Place]] = {}
    for place in everything:
        if place.is_demanded:
            of_tables.setdefault(place.table.name, []).append(place)

    assert missed([chance.choice(of_table) for of_table in chance.sample([*of_tables.values()], 20)]) == []


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_a_thousand_random_corruptions_are_found_by_the_declared_invariants(everything):
    chance = random.Random(SEED)
    chosen = [*everything, *chance.choices([each for each in everything if each.is_demanded], k=1000)][:1000]

    assert missed(chosen) == []


@pytest.mark.thorough
@pytest.mark.timeout(600)
@pytest.mark.parametrize("table", ["map_runs", "map_items", "map_events"])
def test_every_column_of_map_runs_is_found_whatever_takes_the_place_of_its_value(everything, table):
    columns = [place for place in everything if place.table.name == table and place.column is not None]
    assert all(place.is_demanded for place in columns)

    assert missed(columns * 3) == []


@pytest.mark.thorough
@pytest.mark.timeout(1200)
def test_five_hundred_corruptions_of_session_arc_and_epoch_summaries_are_found(everything):
    tables = {"projects", "session_summaries", "session_summary_children", "session_summary_memories"}
    chosen = [place for place in everything if place.table.name in tables]
    assert {place.table.name for place in chosen} == tables

    assert missed(random.Random(SEED).choices(chosen, k=500)) == []


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
    turned = {name: dict(reversed(each.items())) for name, each in value.items() if _has_keys(each)}
    return ("%s", (json.dumps(value | turned),)) if turned and chance.random() < 0.5 else _json(text, chance)


def _has_keys(value: Any) -> bool:
    return isinstance(value, dict) and len(value) > 1


def _bytes(text: str | None, chance: random.Random) -> Value:
    value = bytearray.fromhex((text or "")[2:])
    if not value:
        return "%s", (b"x",)
    value[chance.randrange(len(value))] ^= 1 << chance.randrange(8)
    return "%s", (chance.choice([bytes(value), bytes(value[:-1]), b""]),)


def _array(element: str) -> Callable[[str | None, random.Random], Value]:
    return lambda text, chance: chance.choice(
        [
            (f"coalesce(%s::{element}[], '{{}}') || %s::{element}", (text, "7")),
            (f"%s::{element}[]", ("{}",)),
            (f"(coalesce(%s::{element}[], '{{}}'))[2:]", (text,)),
        ]
    )


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
    "int8multirange": lambda text, chance: ("%s::int8multirange + '{[1000000, 1000001)}'", (text or "{}",)),
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
