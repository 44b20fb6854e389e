"""Declare a table: the protection of each column, and what detects a removed row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

# The invariants that compare a row's seal with its columns: of a conversation's tables, and of the site's.
ROW_SEAL = "rows_match_their_seals"
SITE_ROW_SEAL = "site_rows_match_their_seals"


class Protection(StrEnum):
    """How a change of a column's value is detected."""

    SEALED = "sealed"
    CHECKED = "checked"
    DERIVED = "derived"
    OPERATIONAL = "operational"


@dataclass(frozen=True)
class Column:
    """One column: any of the invariants in `found_by` finds a change.

    An operational one has a reason.
    """

    protection: Protection
    found_by: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class Table:
    """A table. `t` is its alias in the SQL expressions.

    One without columns is `operational`: it records no facts, and all of its columns may change.
    """

    name: str
    columns: Mapping[str, Column] = field(default_factory=dict)
    # SQL for the id of a row in findings, and for its conversation.
    id: str = ""
    conversation: str = ""
    # For a table of the site: SQL for the rows of the workspace `%(workspace_id)s`.
    in_workspace: str = ""
    # The invariants that find a removed row, or why none does.
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


Columns = dict[str, Column]


def sealed(names: str, *found_by: str, note: str = "") -> Columns:
    """Columns that a hash covers."""
    return dict.fromkeys(names.split(), Column(Protection.SEALED, found_by, note))


def checked(names: str, *found_by: str, note: str = "") -> Columns:
    """Columns that an invariant compares with other rows."""
    return dict.fromkeys(names.split(), Column(Protection.CHECKED, found_by, note))


def derived(names: str, *found_by: str, note: str = "") -> Columns:
    """Columns that can be derived from others, with which an invariant compares them."""
    return dict.fromkeys(names.split(), Column(Protection.DERIVED, found_by, note))


def operational(names: str, reason: str) -> Columns:
    """Columns that may change, with the reason."""
    return dict.fromkeys(names.split(), Column(Protection.OPERATIONAL, (), reason))


def row_sealed(names: str, *also: str, seal: str = ROW_SEAL) -> Columns:
    """Columns under a row seal, and the seal."""
    return sealed(names, seal, *also) | checked("row_seal", seal)
