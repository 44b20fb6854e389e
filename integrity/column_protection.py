"""Load `column_protection.toml`: how a change of each column is detected."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

# The invariants that compare the seal of a row with its columns, for tables of conversations and for other tables.
ROW_SEAL = "rows_match_their_seals"
SITE_ROW_SEAL = "site_rows_match_their_seals"


class Protection(StrEnum):
    """How a change of a column's value is detected."""

    # A hash covers the value.
    SEALED = "sealed"
    # An invariant compares the value with other rows.
    CHECKED = "checked"
    # The value can be derived from others, and an invariant compares it with the derived value.
    DERIVED = "derived"
    # The value may change, so a change is not detected.
    OPERATIONAL = "operational"


@dataclass(frozen=True)
class Column:
    """The protection of one column; the invariants in `found_by` detect a change.

    For an operational column, `note` is the reason. For other columns, it names changes that are not detected.
    """

    protection: Protection
    found_by: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table and its protection; the TOML file explains the fields at its start."""

    name: str
    columns: Mapping[str, Column]
    id: str = ""
    conversation: str = ""
    in_workspace: str = ""
    removal: tuple[str, ...] = ()
    removal_note: str = ""

    @property
    def row_seal(self) -> str | None:
        """The invariant that checks the row seals of this table; None without seals."""
        codes = {code for column in self.columns.values() for code in column.found_by}
        return next((code for code in (ROW_SEAL, SITE_ROW_SEAL) if code in codes), None)

    @property
    def sealed_columns(self) -> tuple[str, ...]:
        """The columns that a row's seal covers."""
        return tuple(
            name
            for name, column in self.columns.items()
            if column.protection is Protection.SEALED and self.row_seal in column.found_by
        )


def _table(name: str, *, columns: Sequence[Mapping[str, str]] = (), removal: str = "", **texts: str) -> Table:
    seal = SITE_ROW_SEAL if "in_workspace" in texts else ROW_SEAL
    found: dict[str, Column] = {}
    for declared in columns:
        found_by, note = tuple(declared.get("found_by", "").split()), declared.get("note", "")
        for protection in Protection:
            found |= dict.fromkeys(declared.get(protection, "").split(), Column(protection, found_by, note))
        if "row_sealed" in declared:
            sealed = Column(Protection.SEALED, (seal, *found_by), note)
            found |= dict.fromkeys(declared["row_sealed"].split(), sealed)
            found["row_seal"] = Column(Protection.CHECKED, (seal,))
    return Table(name, found, removal=tuple(removal.split()), **texts)


TABLES: Mapping[str, Table] = {
    name: _table(name, **declared)
    for name, declared in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
