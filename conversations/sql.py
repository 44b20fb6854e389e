"""Run a room's own SQL: named statements, prepared, from one snapshot.

A statement of more than three lines is stored in `<room>/sql/<subject>.sql`, with a name and a comment:

    -- name: newest_matches
    -- The newest messages of a conversation that hold all the words.
    SELECT message_id, seq FROM messages
    WHERE conversation_id = %(conversation_id)s AND content_tsv @@ %(query)s::tsquery
    ORDER BY seq DESC LIMIT %(limit)s

Python loads it once and passes the parameters:

    _NEWEST = sql.load("retrieval/newest.sql")["newest_matches"]
    found = sql.rows(_NEWEST, {"conversation_id": 7, "query": "'boat'", "limit": 20})

`rows` returns tuples, `first_row` a dictionary, and `execute` the number of rows that were changed; the server prepares
the statement once per connection. To have a statement planned for its actual values, use `bound` and `rows_as_planned`.
Reads that must see the same data go into `with sql.snapshot():`. Comment lines are not sent. Write a percent sign
twice. If the conditions of a statement depend on the caller, one module of the room builds them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import psycopg
from django.db import connection, transaction

from conversations.fast.prepared import Values, prepared_cursor
from conversations.fast.prepared import bigint as bigint
from conversations.fast.prepared import first_row as first_row
from conversations.fast.prepared import rows as rows

ROOMS = Path(__file__).parents[1]

_NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)
_COMMENT = re.compile(r"^\s*--.*\n", re.MULTILINE)


@cache
def load(path: str) -> Mapping[str, str]:
    """Load the statements of a file by name; `room/x.sql` is `room/sql/x.sql`."""
    room, _, name = path.partition("/")
    before, *sections = _NAME.split((ROOMS / room / "sql" / name).read_text())
    names, texts = sections[::2], [_COMMENT.sub("", text).strip() for text in sections[1::2]]
    if _COMMENT.sub("", before).strip() or not names or len(set(names)) < len(names) or not all(texts):
        raise ValueError(f"{path}: each statement needs a line `-- name: ...` with a name of its own.")
    return MappingProxyType(dict(zip(names, texts, strict=True)))


def execute(statement: str, values: Values = ()) -> int:
    """Run a prepared statement that changes rows; return their number."""
    with prepared_cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.rowcount


def bound(statement: str, values: Values) -> str:
    """Bind values into a statement, or part of one, for `rows_as_planned`."""
    connection.ensure_connection()
    return psycopg.ClientCursor(connection.connection).mogrify(statement, values)


def rows_as_planned(statement: str) -> list[tuple[Any, ...]]:
    """Return all rows of a statement from `bound`, planned for its values."""
    with prepared_cursor(kind=psycopg.Cursor) as cursor:
        cursor.execute(statement)
        return cursor.fetchall()


@contextmanager
def snapshot(*, settings: Mapping[str, str] = MappingProxyType({})) -> Iterator[None]:
    """Run the block in a read-only REPEATABLE READ transaction: one snapshot.

    Inside an open transaction this does nothing: its isolation and settings apply. `settings` are set on the server for
    the block.
    """
    if connection.in_atomic_block or not connection.get_autocommit():
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("; ".join([_SNAPSHOT, *(f"SET LOCAL {name} = {value}" for name, value in settings.items())]))
        yield


_SNAPSHOT = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Settings for a snapshot in which the server plans each prepared statement once, for any values.
GENERIC_PLANS = {"plan_cache_mode": "force_generic_plan"}


def is_askable(key: int | str) -> bool:
    """Whether this may be a row's id: PostgreSQL refuses any other in a query."""
    # Others are a number beyond bigint, and a text with NUL.
    return -(2**63) <= key < 2**63 if isinstance(key, int) else key.isprintable()


def array(ids: Iterable[int]) -> str:
    """Format integers as an array literal, for `= ANY(%s::bigint[])`."""
    return "{" + ",".join(map(str, ids)) + "}"


def texts(given: Iterable[str]) -> str:
    """Format texts, none of them None, as an array literal: `= ANY(%s::text[])`."""
    return "{" + ",".join('"' + each.replace("\\", "\\\\").replace('"', '\\"') + '"' for each in given) + "}"
