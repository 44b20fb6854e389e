"""Tables for a terminal, as `make bench` and `make eval` print them."""

from __future__ import annotations

from collections.abc import Collection, Sequence


def in_columns(rows: Sequence[Sequence[str]], *, to_the_right: Collection[int] = ()) -> str:
    """Format rows as a text table; each column is as wide as its widest cell."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place in to_the_right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def met(is_met: bool | None) -> str:
    """The verdict on a goal: "met" or "NOT MET"; "" without a goal."""
    return {None: "", True: "met", False: "NOT MET"}[is_met]
