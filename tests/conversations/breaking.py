"""Damage for tests: what somebody does to rows who can get past triggers and foreign keys."""

from __future__ import annotations

from django.db import connection


def breaking(statement: str, *values: object) -> int:
    """Run a statement as if there were no triggers; how many rows it touched."""
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET session_replication_role = replica")
        try:
            cursor.execute(statement, values)
            return cursor.rowcount
        finally:
            cursor.execute("SET session_replication_role = origin")
