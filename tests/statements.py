"""Counts what really goes to the database, past Django too, whose own counter does not see prepared statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg
from django.db import connection

_GONE_THROUGH = """
    SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0) FROM pg_stat_xact_user_tables
"""
_REAL = psycopg.Cursor.execute


@contextmanager
def counted_statements() -> Iterator[list[str]]:
    """The statements sent within, as they are sent."""
    sent: list[str] = []

    def execute(cursor: psycopg.Cursor[Any], query: Any, *args: Any, **options: Any) -> Any:
        sent.append(str(query))
        return _REAL(cursor, query, *args, **options)

    with patch.object(psycopg.Cursor, "execute", execute):
        yield sent


def rows_gone_through() -> int:
    """How many rows the server has gone through in this transaction so far, in tables and by way of indexes."""
    with connection.cursor() as cursor:
        cursor.execute(_GONE_THROUGH)
        return int(cursor.fetchone()[0])
