"""Counts what really goes to the database, past Django too, whose own counter does not see prepared statements."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import psycopg

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
