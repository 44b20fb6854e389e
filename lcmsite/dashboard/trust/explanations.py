"""What a finding means and what a repair step does, read from integrity's README."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import integrity

README = Path(integrity.__file__).parent / "README.md"

_NAME = re.compile(r"`(\w+)`")


def meaning_of(code: str) -> str:
    """The meaning of a finding of this invariant."""
    return _table("code", "what a finding means")[code]


def effect_of(operation: str) -> str:
    """The effect of a repair step of this kind."""
    return _table("step", "what it does")[operation]


@cache
def _table(key: str, column: str) -> Mapping[str, str]:
    """A column of a table of the README, by the names in the first column."""
    rows = [_cells(line) for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    first, place = next((at, row.index(column)) for at, row in enumerate(rows) if row[0] == key and column in row)
    found: dict[str, str] = {}
    # After the heading and its rule, up to the heading of the next table.
    for row in rows[first + 2 :]:
        if not row[0].startswith("`"):
            break
        found |= dict.fromkeys(_NAME.findall(row[0]), row[place])
    return found


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
