"""Layout of records on a terminal: headings, texts, fields and tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import singledispatch
from itertools import chain
from typing import Any

from django.conf import settings
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conversations.humanize import words
from lcmsite.answers.answer_text import is_list_of_records
from lcmsite.cli.cli_session import DEFAULT_WORKSPACE

# Wider than any table.
UNLIMITED_WIDTH = 100_000
# Long enough for a SHA-256 in hex.
LONGEST_CELL = 64
# Limited in a file or a pipe too, because all rows of a table are padded to the longest cell.
LONGEST_PIPED_CELL = 1_000
# Fields that name a record, besides its ids.
_NAMES = frozenset({"id", "name", "title", "first_prompt"})

# Stored text must not move the cursor or colour the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


@dataclass(frozen=True)
class Screen:
    """Writes to a terminal; stored text can neither move its cursor nor colour it."""

    console: Console
    # Returns the name of the workspace that the results are from.
    workspace: Callable[[], str] = str

    def line(self, *pieces: str | tuple[str, str], style: str = "", end: str = "\n") -> None:
        """Write pieces in one line, each plain or with a style of its own."""
        shown = (safe(each) if isinstance(each, str) else (safe(each[0]), each[1]) for each in pieces)
        self.console.print(Text.assemble(*shown), style=style, end=end, soft_wrap=True)

    def heading(self, title: str, *more: str) -> None:
        """Write the title of what follows, with details beside it."""
        self.line((title, "bold"), ("  " + "  ".join(more), "dim"))

    def body(self, text: str) -> None:
        """Write a text unwrapped, followed by a blank line."""
        self.line(f"{text}\n")

    def note(self, text: str) -> None:
        """Write a remark in one dim line."""
        self.line(text, style="dim")

    def command(self, words: str) -> str:
        """The command line of this verb and its arguments, in the same workspace."""
        name = self.workspace()
        usual = settings.DEPLOYMENT.workspace or DEFAULT_WORKSPACE
        return f"lcm {words}" if name in ("", usual) else f"lcm --workspace {name} {words}"

    def table(self, rows: Sequence[Any]) -> None:
        """Show records as a table; on a terminal too narrow for it, one below the other."""
        if self.console.width >= UNLIMITED_WIDTH:
            # In a file or a pipe, cells are not shortened to fit a screen, and lines do not end in spaces.
            with self.console.capture() as shown:
                self.console.print(table(rows, longest=LONGEST_PIPED_CELL))
            for line in shown.get().removesuffix("\n").split("\n"):
                self.console.print(Text(line.rstrip()), soft_wrap=True)
            return
        grid = table(rows)
        unlimited = self.console.options.update(max_width=UNLIMITED_WIDTH)
        if self.console.measure(grid, options=unlimited).maximum <= self.console.width:
            self.console.print(grid)
            return
        for number, row in enumerate(rows):
            if number:
                self.line()
            self.fields(row)

    def fields(self, record: Any, indent: str = "") -> None:
        """Show the non-empty fields of a record: values first, then nested records."""
        values = {each.name: getattr(record, each.name) for each in fields(record)}
        filled = {name: value for name, value in values.items() if value not in (None, (), [], {})}
        nested = {name: value for name, value in filled.items() if is_dataclass(value) or is_list_of_records(value)}
        for name, value in filled.items():
            if name not in nested:
                self.line((f"{indent + words(name):<20} ", "dim"), cell(value, longest=None))
        for name, value in nested.items():
            self.line((f"{indent}{words(name)}:", "bold"))
            if is_dataclass(value):
                self.fields(value, indent + "  ")
            else:
                self.table(value)


@singledispatch
def show_one(record: Any, screen: Screen) -> None:
    """Show one record; without a renderer of its own type, a line for each field."""
    screen.fields(record)


def table(rows: Sequence[Any], *, longest: int = LONGEST_CELL) -> Table:
    """A table with a row for each record, without columns that are always empty.

    A nested record becomes columns of its own: its ids and names, or all of its fields if it has none.
    """
    flat = [_flat(row) for row in rows]
    names = [name for name in dict.fromkeys(chain(*flat)) if any(_fits_a_cell(row.get(name)) for row in flat)]
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for name in names:
        grid.add_column(words(name), overflow="fold")
    for row in flat:
        grid.add_row(*(Text(_in_table(row.get(name), longest)) for name in names))
    return grid


def _flat(record: Any) -> dict[str, Any]:
    """The values of a record and of its nested records, by field name."""
    values: dict[str, Any] = {}
    for each in fields(record):
        value = getattr(record, each.name)
        if is_dataclass(value):
            # The row's own values win.
            values |= {name: part for name, part in _ids_and_names(value).items() if not hasattr(record, name)}
        else:
            values[each.name] = value
    return values


def _ids_and_names(record: Any) -> dict[str, Any]:
    """The ids and names of a record by field; all fields if it has neither."""
    values = {each.name: getattr(record, each.name) for each in fields(record)}
    naming = {name: value for name, value in values.items() if name in _NAMES or name.endswith("_id")}
    return naming or values


def _fits_a_cell(value: Any) -> bool:
    return not (value is None or value in ((), {}) or is_dataclass(value) or is_list_of_records(value))


def _in_table(value: Any, longest: int) -> str:
    """A value as a cell; objects and lists are always short."""
    return cell(value, longest=LONGEST_CELL if isinstance(value, Mapping | list | tuple) else longest)


def cell(value: Any, *, longest: int | None = LONGEST_CELL) -> str:
    """A value as text on one line of at most `longest` characters; None: in full."""
    match value:
        case None:
            return "-"
        case True | False:
            return "yes" if value else "no"
        case datetime():
            return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        case Mapping():
            text = _join_fields(value)
        case list() | tuple():
            text = ", ".join(cell(each) for each in value) or "-"
        case _ if is_dataclass(value):
            text = _join_fields({words(each.name): getattr(value, each.name) for each in fields(value)})
        case _:
            text = safe(str(value))
    if longest is None:
        return text
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1] + "…"


def _join_fields(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{safe(str(name))} {cell(each)}" for name, each in values.items()) or "-"


def safe(text: str) -> str:
    """The text with each control character escaped."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def blanked(text: str) -> str:
    """The text with each control character replaced by one other character."""
    return _CONTROL.sub("\ufffd", text)
