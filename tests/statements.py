"""Send statements to the database, count them and the rows they read; renew its statistics."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
from django.db import connection

from conversations.sql import rows

_GONE_THROUGH = """
    SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables
    WHERE relname LIKE %s
"""
_REAL = psycopg.Cursor.execute


@contextmanager
def counted_statements() -> Iterator[list[str]]:
    """Yield a list of the SQL statements that are sent during the block."""
    sent: list[str] = []

    def execute(cursor: psycopg.Cursor[Any], query: Any, *args: Any, **options: Any) -> Any:
        sent.append(str(query))
        return _REAL(cursor, query, *args, **options)

    with patch.object(psycopg.Cursor, "execute", execute):
        yield sent


def execute(statement: str, *values: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)


def analyze(tables: str = "messages") -> None:
    """Renew the statistics of these tables, which autovacuum keeps up to date."""
    execute(f"ANALYZE {tables}")


def rows_gone_through(table: str = "%") -> int:
    """How many rows this transaction has read so far, of one table or of all, also through indexes."""
    return int(value(_GONE_THROUGH, table))


def rows_handled(statement: str, values: Mapping[str, Any]) -> int:
    """How many rows all steps of a plan processed, including rows filtered out."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement}", values)
        ((explained,),) = cursor.fetchall()
    [told] = json.loads(explained) if isinstance(explained, str) else explained
    return sum(int(node["Actual Loops"] * _met_in(node)) for node in _nodes(told["Plan"]))


def _met_in(node: Mapping[str, Any]) -> float:
    return float(node["Actual Rows"] + sum(count for name, count in node.items() if name.startswith("Rows Removed")))


def _nodes(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for below in node.get("Plans", ()):
        yield from _nodes(below)


def value(statement: str, *values: object) -> Any:
    return rows(statement, values)[0][0]
