"""Invariants of row seals (hashes of rows), references and the audit log."""

from __future__ import annotations

from collections.abc import Sequence

from conversations.sql import load, rows
from integrity.column_protection import ROW_SEAL, SITE_ROW_SEAL, TABLES, Table
from integrity.invariants.invariant import Found, in_sql, invariant, site_violations, violations
from integrity.types import Severity

FILE = "integrity/audit_invariants.sql"
SQL = load(FILE)
_UNION = "\nUNION ALL\n"

# References that `rows_belong_to_something` skips: another invariant checks each, with a more precise finding.
_FOLLOWED = frozenset(
    {
        ("context_items", "message_id"),
        ("context_items", "summary_id"),
        ("large_files", "erased_by_id"),
        ("messages", "cold_block_id"),
        ("messages", "erased_by_id"),
        ("summaries", "erased_by_id"),
        ("summaries", "supersedes_id"),
        ("summary_messages", "message_id"),
        ("summary_parents", "parent_summary_id"),
    }
)


@invariant(Severity.ERROR)
def rows_match_their_seals(conversation_ids: Sequence[int]) -> Found:
    """Every row that records a fact of a conversation matches its row seal."""
    tables = [table for table in TABLES.values() if table.row_seal == ROW_SEAL]
    statement = _UNION.join(_altered_rows(table, f"{table.conversation} = ANY(%(ids)s)") for table in tables)
    return violations(statement, conversation_ids)


@invariant(Severity.ERROR, of_the_site=True)
def site_rows_match_their_seals(workspace_id: int | None) -> Found:
    """Every row that records a fact of a workspace matches its row seal."""
    tables = [table for table in TABLES.values() if table.row_seal == SITE_ROW_SEAL]
    conditions = ["true" if workspace_id is None else table.in_workspace for table in tables]
    return site_violations(_UNION.join(map(_altered_rows, tables, conditions)), workspace_id)


def _altered_rows(table: Table, condition: str) -> str:
    return SQL["altered_rows"].format(
        table=table.name,
        id=table.id,
        conversation=table.conversation or "NULL::bigint",
        columns=", ".join(f"t.{name}" for name in table.sealed_columns),
        condition=condition,
    )


@invariant(Severity.ERROR, of_the_site=True)
def rows_belong_to_something(workspace_id: int | None) -> Found:
    """Every row refers to rows that exist, such as a message to its conversation.

    Only a check of the whole site includes this invariant, because an orphaned row belongs to no workspace.
    """
    if workspace_id is not None:
        return Found()
    references = [each for each in rows(SQL["references"]) if tuple(each[:2]) not in _FOLLOWED]
    return violations(_UNION.join(_orphans(*each) for each in references), ())


def _orphans(name: str, column: str, owner: str, key: str) -> str:
    table = TABLES.get(name, Table(name, {}))
    return SQL["orphans"].format(
        table=name,
        id=table.id or f"'{name}'",
        conversation=table.conversation or "NULL",
        column=column,
        owner=owner,
        key=key,
    )


in_sql(
    FILE,
    Severity.ERROR,
    {"audited_rows_are_there": "Every quarantine, erasure and applied repair in the audit log has its row."},
)
in_sql(
    FILE,
    Severity.ERROR,
    {"audited_site_rows_are_there": "Every key that the audit log says was issued has its row."},
    of_the_site=True,
)
# The whole site has one audit log, so a check of any workspace covers all of it. A finding has the number of an entry.
in_sql(
    FILE,
    Severity.CRITICAL,
    {"acts_are_chained": "No act in the audit log was altered, removed or inserted."},
    of_the_site=True,
)
