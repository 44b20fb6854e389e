"""What was removed shows by what is left of it: references, and acts in the audit log."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from integrity.columns import TABLES, Table
from integrity.invariants.invariant import Found, invariant, violations
from integrity.types import Severity

# Every reference to a table by one column.
_REFERENCES = """
    SELECT referring.relname, own.attname, referred.relname, other.attname
    FROM pg_constraint c
    JOIN pg_class referring ON referring.oid = c.conrelid
    JOIN pg_class referred ON referred.oid = c.confrelid
    JOIN pg_attribute own ON own.attrelid = c.conrelid AND own.attnum = c.conkey[1]
    JOIN pg_attribute other ON other.attrelid = c.confrelid AND other.attnum = c.confkey[1]
    WHERE c.contype = 'f' AND cardinality(c.conkey) = 1 AND c.connamespace = current_schema()::regnamespace
    ORDER BY 1, 2
"""
# References that an invariant of the conversation follows: a finding there says more.
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


@invariant(Severity.ERROR, of_the_site=True)
def rows_belong_to_something(workspace_id: int | None) -> Found:
    """Every row that refers to another, such as a message to its conversation, refers to one that exists.

    Looked for in a check of everything alone: what belongs nowhere is in no workspace.
    """
    if workspace_id is not None:
        return Found()
    with connection.cursor() as cursor:
        cursor.execute(_REFERENCES)
        references = [each for each in cursor.fetchall() if tuple(each[:2]) not in _FOLLOWED]
    return violations(" UNION ALL ".join(_orphans(*each) for each in references), ())


def _orphans(name: str, column: str, owner: str, key: str) -> str:
    table = TABLES.get(name, Table(name, {}))
    return f"""
        SELECT {table.conversation or "NULL"}::bigint, {table.id or f"'{name}'"}::text,
               '{name}: there is no {column} ' || t.{column}
        FROM {name} t LEFT JOIN {owner} owner ON owner.{key} = t.{column}
        WHERE t.{column} IS NOT NULL AND owner.{key} IS NULL
    """


@invariant(Severity.ERROR)
def audited_rows_are_there(conversation_ids: Sequence[int]) -> Found:
    """Every quarantine, erasure and applied repair that the audit log names has its row."""
    return violations(
        """
        SELECT a.conversation_id, a.target, format('was quarantined %%s times and has %%s rows', count(*), (
                   SELECT count(*) FROM quarantines q
                   WHERE q.conversation_id = a.conversation_id AND q.target = a.target))
        FROM audit_log a
        WHERE a.conversation_id = ANY(%(ids)s) AND a.act = 'quarantine'
        GROUP BY a.conversation_id, a.target
        HAVING count(*) > (
            SELECT count(*) FROM quarantines q WHERE q.conversation_id = a.conversation_id AND q.target = a.target)
        UNION ALL
        SELECT a.conversation_id, a.target,
               format('is named by act %%s of the audit log and is not there', min(a.audit_id))
        FROM audit_log a
        WHERE a.conversation_id = ANY(%(ids)s)
          AND (a.act IN ('preview_erasure', 'erase')
               AND NOT EXISTS (SELECT FROM erasures e WHERE e.erasure_id = a.target)
               OR a.act = 'apply_repair'
               AND NOT EXISTS (SELECT FROM repair_plans p WHERE p.plan_id = a.target))
        GROUP BY a.conversation_id, a.target
        """,
        conversation_ids,
    )


@invariant(Severity.ERROR, of_the_site=True)
def audited_site_rows_are_there(workspace_id: int | None) -> Found:
    """Every key that the audit log says was issued has its row."""
    # Keys are kept by the site, of which this room knows nothing but the table.
    if "api_keys" not in connection.introspection.table_names():
        return Found()
    return violations(
        """
        SELECT NULL::bigint, a.target, format('is named by act %%s of the audit log and is not there', a.audit_id)
        FROM audit_log a
        WHERE (%(workspace_id)s::bigint IS NULL OR a.workspace_id = %(workspace_id)s) AND a.act = 'issue_key'
          AND NOT EXISTS (SELECT FROM api_keys k WHERE 'key ' || k.api_key_id = a.target)
        """,
        (),
        workspace_id=workspace_id,
    )
