"""Load `column_protection.toml`: what protects each column of the database."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

# The invariants that compare a row's seal with its columns: of a conversation's tables, and of the site's.
ROW_SEAL = "rows_match_their_seals"
SITE_ROW_SEAL = "site_rows_match_their_seals"


class Protection(StrEnum):
    """How a change of a column's value is detected."""

    # A hash covers the value.
    SEALED = "sealed"
    # An invariant compares it with other rows.
    CHECKED = "checked"
    # It can be derived from others, with which an invariant compares it.
    DERIVED = "derived"
    # It may change.
    OPERATIONAL = "operational"


@dataclass(frozen=True)
class Column:
    """The protection of one column: an invariant in `found_by` finds a change.

    `note` is the reason for an operational column, and for others what is not found.
    """

    protection: Protection
    found_by: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table, and what detects a removed row; the TOML file explains the fields."""

    name: str
    columns: Mapping[str, Column]
    id: str = ""
    conversation: str = ""
    in_workspace: str = ""
    removal: tuple[str, ...] = ()
    removal_note: str = ""

    @property
    def row_seal(self) -> str | None:
        """The invariant that compares the row seals of this table, if it has any."""
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
