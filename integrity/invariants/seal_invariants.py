"""Rows that record a fact are as they were written: their seals computed again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db import connection

from integrity.columns import ROW_SEAL, SITE_ROW_SEAL, TABLES, Table
from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity


@invariant(Severity.ERROR)
def rows_match_their_seals(conversation_ids: Sequence[int]) -> Found:
    """Every row that records a fact of a conversation has the values that its seal covers."""
    statement = _union(_altered(table, f"{table.conversation} = ANY(%(ids)s)") for table in _sealed_by(ROW_SEAL))
    return violations(statement, conversation_ids)


@invariant(Severity.ERROR, of_the_site=True)
def site_rows_match_their_seals(workspace_id: int | None) -> Found:
    """Every workspace, key, membership, grant, report and repair has the values that its seal covers."""
    statement = _union(
        _altered(table, "true" if workspace_id is None else table.in_workspace) for table in _sealed_by(SITE_ROW_SEAL)
    )
    return violations(statement, (), workspace_id=workspace_id)


def _sealed_by(code: str) -> list[Table]:
    """The tables with this seal that are there: some belong to rooms that this one does not import."""
    present = set(connection.introspection.table_names())
    return [table for table in TABLES.values() if table.row_seal == code and table.name in present]


def _altered(table: Table, condition: str) -> str:
    columns = ", ".join(f"t.{name}" for name in table.sealed_columns)
    return f"""
        SELECT {table.conversation or "NULL::bigint"}, {table.id}, '{table.name}: its values are not what was sealed'
        FROM {table.name} t, LATERAL (SELECT {columns}) AS sealed
        WHERE {condition} AND t.row_seal IS DISTINCT FROM lcm_row_seal('{table.name}', sealed)
    """


def _union(statements: Iterable[str]) -> str:
    return " UNION ALL ".join(statements)
