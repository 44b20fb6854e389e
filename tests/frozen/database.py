"""The database's schema, as pg_dump writes it, in an order of its own and without comments."""

from __future__ import annotations

import re
import subprocess

from django.db import connection

from lcmsite.ops.backup.programs import Database

MAJOR = 18
"""Of the server that LCM brings along. Another one writes other words for the same schema."""

_OBJECT = re.compile(r"\n--\n-- Name: (?P<name>.*?); Type: (?P<type>.*?); Schema: .*\n--\n")
_ASIDE = re.compile(r"^\s*--.*\n|^(?:SET|SELECT pg_catalog)\b.*\n|^\\.*\n|^\s*\n", re.M)
_COLUMNS = re.compile(r"(?<= \(\n)(    .*?)(?=\n\))", re.S)
_NEXT_COLUMN = re.compile(r",\n(?=    \S)")


def schema() -> str:
    """Every table, function, trigger, index and constraint of the connected database."""
    connection.ensure_connection()
    database = Database.of(connection.connection)
    dumped = subprocess.run(
        [str(database.tools / "pg_dump"), "--schema-only", "--no-owner", "--no-privileges", f"--dbname={database.url}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    _, *pieces = _OBJECT.split(dumped)
    objects = sorted(zip(pieces[1::3], pieces[0::3], pieces[2::3], strict=True))
    # pgvector is there once an embedder was set up.
    found = [each for each in objects if f"{each[0]} {each[1]}" not in ("EXTENSION vector", "COMMENT EXTENSION vector")]
    return "\n".join(f"-- {kind} {name}\n{_normal(kind, body)}" for kind, name, body in found)


def _normal(kind: str, body: str) -> str:
    """The statement; the columns of a table in alphabetical order, as theirs says nothing to a program."""
    statement = _ASIDE.sub("", body)
    return _COLUMNS.sub(_sorted_columns, statement) if kind == "TABLE" else statement


def _sorted_columns(found: re.Match[str]) -> str:
    return ",\n".join(sorted(_NEXT_COLUMN.split(found[1])))
