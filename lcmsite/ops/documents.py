"""`make docs`: write the parts of documents that are generated from the code.

A test fails if the documents differ from what would be generated.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lcmsite.environment import Variable

PROJECT = Path(__file__).resolve().parents[2]
REFERENCE = PROJECT / "docs" / "reference.md"
README = PROJECT / "README.md"
DEPLOYMENT = PROJECT / "docs" / "deployment.md"
INTEGRITY = PROJECT / "integrity" / "README.md"


def generated_documents() -> dict[Path, str]:
    """The text that each of these documents should have, by path."""
    # Imported here, because it needs the apps to be set up.
    from lcmsite.catalogue import reference

    return {
        REFERENCE: reference.page(),
        README: _filled(README, "settings", settings_table()),
        DEPLOYMENT: _filled(DEPLOYMENT, "clock", clock_table()),
        INTEGRITY: _filled(INTEGRITY, "columns", columns_table()),
    }


def _filled(document: Path, part: str, table: str) -> str:
    """The document with this table between the marks of the part."""
    marked = re.compile(rf"(?<=<!-- {part} -->\n).*?(?=\n<!-- /{part} -->)", re.S)
    return marked.sub(lambda _: table, document.read_text(encoding="utf-8"))


def settings_table() -> str:
    """README's tables of settings, one for each group."""
    from lcmsite.environment import TITLES, declared_settings

    lines = []
    for owner, title in TITLES.items():
        lines += [f"**{title}**", "", "| name | default | what it is |", "|---|---|---|"]
        for variable in declared_settings():
            if variable.owner is owner:
                lines.append(_setting_row(variable))
        lines.append("")
    return "\n".join(lines).rstrip()


def _setting_row(variable: Variable) -> str:
    about = variable.knob.metadata
    low, high = about["low"], about["high"]
    bounds = "" if low is None and high is None else f" ({low:,} to {high:,})"
    star = "\\*" if about.get("per_conversation") else "†" if variable.is_secret else ""
    default = "" if variable.default in ("", None) else f"`{variable.default}`"
    return f"| `{variable.name}`{star} | {default} | {about['help']}{bounds} |"


def clock_table() -> str:
    """The table of periodic tasks in docs/deployment.md."""
    from lcmsite.periodic_tasks import periodic_tasks

    lines = ["| when (UTC) | what | task |", "|---|---|---|"]
    lines += [f"| {each.schedule} | {each.does} | `{each.room}`: `{each.name}` |" for each in periodic_tasks()]
    return "\n".join(lines)


def columns_table() -> str:
    """The table of the database's columns in integrity's README."""
    from integrity.column_protection import TABLES, Column

    lines = ["| table | columns | protection | found by, or why not |", "|---|---|---|---|"]

    def add(table: str, columns: str, protection: str, found_by: Iterable[str], note: str) -> None:
        codes = ", ".join(f"`{code}`" for code in found_by)
        lines.append(f"| `{table}` | {columns} | {protection} | {'; '.join(filter(None, (codes, note)))} |")

    for table in TABLES.values():
        if not table.columns:
            add(table.name, "*all, and removed rows*", "operational", (), table.removal_note)
            continue
        # Columns with the same protection share a line.
        groups: dict[Column, list[str]] = {}
        for name, column in table.columns.items():
            groups.setdefault(column, []).append(name)
        for column, names in groups.items():
            add(table.name, " ".join(names), column.protection, column.found_by, column.note)
        add(table.name, "*a removed row*", "checked" if table.removal else "-", table.removal, table.removal_note)
    return "\n".join(lines)


def main() -> None:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    django.setup()
    for path, text in generated_documents().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
