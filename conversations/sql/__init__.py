"""SQL that reads as SQL: migrations load these files by name."""

from __future__ import annotations

from pathlib import Path

from django.db.migrations import RunSQL

HERE = Path(__file__).parent


class RunSQLFile(RunSQL):
    """Runs a `.sql` file of an app's `sql` folder; the state operations tell Django what it made."""

    def __init__(self, path: Path, **options: object) -> None:
        super().__init__(path.read_text(), reverse_sql=RunSQL.noop, **options)  # type: ignore[arg-type]
        self.name = path.name

    def deconstruct(self) -> tuple[str, list[object], dict[str, object]]:
        raise TypeError("Migrations with SQL files are written by hand.")

    def describe(self) -> str:
        return f"Runs {self.name}"
