"""Random single corruptions of every column of every table: the declared invariant finds what is declared to be found.

The declarations in `integrity/column_protection.toml` are the oracle. Whatever is sealed, checked or derived has to be
found by one of the invariants that they name. What the database itself refuses counts as refused.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from integrity.checker import IntegrityChecker
from integrity.column_protection import TABLES, Column, Protection, Table
from tests.integrity.everything import make_everything
from tests.integrity.mutations import another_value, enum_labels
from tests.made_once import made_once

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
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


@pytest.fixture(autouse=True)
def files_of_its_own(settings: Any, media: Path) -> None:
    """The files are made once, as the rows are."""
    settings.MEDIA_ROOT = media


@pytest.fixture(scope="module")
def everything(django_db_setup: None, django_db_blocker: DjangoDbBlocker, media: Path) -> Iterator[list[Place]]:
    with made_once(django_db_blocker), override_settings(MEDIA_ROOT=media):
        make_everything()
        assert found() == set()
        yield places()


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
    before, there = _text(name, column, row), _text(name, column, other)
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


def _text(table: str, column: str | None, row: str) -> str | None:
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


def test_a_corruption_in_each_table_is_found_by_the_declared_invariant(everything):
    chance = random.Random(SEED)
    of_tables: dict[str, list[Place]] = {}
    for place in everything:
        if place.is_demanded:
            of_tables.setdefault(place.table.name, []).append(place)

    assert missed([chance.choice(of_table) for of_table in of_tables.values()]) == []


@pytest.mark.thorough
@pytest.mark.timeout(1800)
def test_a_thousand_random_corruptions_are_found_by_the_declared_invariants(everything):
    chance = random.Random(SEED)
    chosen = [*everything, *chance.choices([each for each in everything if each.is_demanded], k=1000)][:1000]

    assert missed(chosen) == []
