"""Migration operations: run a `.sql` file, and hash the rows of a table."""

from __future__ import annotations

from django.db.migrations import RunSQL

from conversations.sql import ROOMS, load


class RunSQLFile(RunSQL):
    """Run a file such as `conversations/sql/tables.sql`."""

    def __init__(self, path: str, **options: object) -> None:
        super().__init__((ROOMS / path).read_text(), reverse_sql=RunSQL.noop, **options)  # type: ignore[arg-type]
        self.path = path

    def describe(self) -> str:
        return f"Run {self.path}"


class SealRows(RunSQL):
    """Add a hash of these columns, `row_seal`, to all rows of a table.

    A trigger computes the hash at later writes. Applied again with other columns, this operation replaces the hash.
    `row_seal` is in no model: only the database writes it, and only the integrity checker reads it.
    """

    def __init__(self, table: str, columns: str) -> None:
        names = columns.split()
        parts = {
            "table": table,
            "columns": ", ".join(names),
            "row_columns": ", ".join(f"row.{name}" for name in names),
            "quoted_columns": ", ".join(f"'{name}'" for name in names),
        }
        statements = load("conversations/seal_table.sql")
        self.table = table
        super().__init__(statements["seal_table"].format(**parts), statements["unseal_table"].format(**parts))

    def describe(self) -> str:
        return f"Seal the rows of {self.table}"
