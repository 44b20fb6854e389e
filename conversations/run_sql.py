"""Migration operations: run a `.sql` file, and seal the rows of a table."""

from __future__ import annotations

from pathlib import Path

from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations import RunSQL
from django.db.migrations.recorder import MigrationRecorder

ROOT = Path(__file__).parents[1]


class RunSQLFile(RunSQL):
    """Run a file such as `conversations/sql/tables.sql`; the state operations describe to Django what it makes."""

    def __init__(self, path: str, **options: object) -> None:
        super().__init__((ROOT / path).read_text(), reverse_sql=RunSQL.noop, **options)  # type: ignore[arg-type]
        self.path = path

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        raise TypeError("Migrations with SQL files are written by hand.")

    def describe(self) -> str:
        return f"Run {self.path}"


class SealRows(RunSQL):
    """Give a table a seal over these columns (see row_seals.sql), and seal the rows it has.

    Used again on the same table, it seals with other columns. `row_seal` is in no model: the database alone writes it,
    and only the checker reads it.
    """

    def __init__(self, table: str, columns: str) -> None:
        names = columns.split()
        self.table = table
        super().__init__(
            [
                f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS row_seal BYTEA",
                # Immutable rows get their seal, too. Other sessions wait: the migration holds the table.
                f"ALTER TABLE {table} DISABLE TRIGGER USER",
                f"""
                UPDATE {table} t SET row_seal = lcm_row_seal('{table}', sealed)
                FROM (SELECT ctid AS place, {", ".join(names)} FROM {table}) AS row,
                     LATERAL (SELECT {", ".join(f"row.{name}" for name in names)}) AS sealed
                WHERE row.place = t.ctid
                """,
                f"ALTER TABLE {table} ENABLE TRIGGER USER",
                f"DROP TRIGGER IF EXISTS {table}_are_sealed ON {table}",
                # Only writes of sealed columns pay for it. By its name it runs after the triggers that refuse changes.
                f"""
                CREATE TRIGGER {table}_are_sealed BEFORE INSERT OR UPDATE OF {", ".join(names)}, row_seal ON {table}
                FOR EACH ROW EXECUTE FUNCTION lcm_seal_row({", ".join(f"'{name}'" for name in names)})
                """,
            ],
            [f"DROP TRIGGER {table}_are_sealed ON {table}", f"ALTER TABLE {table} DROP COLUMN row_seal"],
        )

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        raise TypeError("Migrations that seal rows are written by hand.")

    def describe(self) -> str:
        return f"Seal the rows of {self.table}"


def refuse_other_migrations(*, using: str, **facts: object) -> None:
    """Raise CommandError for a database with the tables of an LCM before migrations began at `0001_initial`."""
    if ("conversations", "0001_store") in MigrationRecorder(connections[using]).applied_migrations():
        raise CommandError(
            "This database was made by an earlier version of LCM, and was not changed: export its conversations with"
            " that version (`lcm ledger export --all -o FILE`), and import them into an empty database with this one"
            " (`lcm ledger import FILE`). See docs/upgrade.md."
        )
