"""SQL that reads as SQL: migrations load these files by name."""

from __future__ import annotations

from pathlib import Path

from django.db.migrations import RunSQL

HERE = Path(__file__).parent / "sql"


class RunSQLFile(RunSQL):
    """Runs a `.sql` file of an app's `sql` folder; the state operations tell Django what it made."""

    def __init__(self, path: Path, **options: object) -> None:
        super().__init__(path.read_text(), reverse_sql=RunSQL.noop, **options)  # type: ignore[arg-type]
        self.name = path.name

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        raise TypeError("Migrations with SQL files are written by hand.")

    def describe(self) -> str:
        return f"Runs {self.name}"


class SealRows(RunSQL):
    """Give a table a seal over these columns (see row_seals.sql), and seal the rows that are there.

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
        return f"Seals the rows of {self.table}"
