"""Describe CSV and TSV tables: columns, types, examples, rows. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from itertools import islice

from conversations.files.exploration.glance import Seen, cut
from conversations.humanize import counted

MOST_ROWS = 20_000
MOST_COLUMNS = 50
# Maximum length of a cell, for a text whose name or MIME type does not say that it is a table.
LONGEST_CELL = 60
_DELIMITERS = ",\t;|"
_NOTHING = frozenset({"", "null", "none", "na", "n/a", "nan", "-"})
_KINDS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("whole number", re.compile(r"[+-]?[0-9]{1,30}")),
    ("number", re.compile(r"[+-]?[0-9]{0,30}[.,]?[0-9]{1,30}([eE][+-]?[0-9]{1,4})?")),
    ("true or false", re.compile(r"true|false|yes|no", re.IGNORECASE)),
    ("date", re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9:.]{5,15}(Z|[+-][0-9:]{4,6})?)?")),
)


def delimiter_of(text: str, *, is_named_so: bool) -> str | None:
    """Return the delimiter if the first lines are rows of a table.

    The check is stricter for a text that is not named as a table, because prose has commas, too.
    """
    lines = text[:20_000].split("\n")[:20]
    whole = lines if len(text) < 20_000 and len(lines) < 20 else lines[:-1]
    filled = [line for line in whole if line.strip()]
    if len(filled) < (1 if is_named_so else 3) or (not is_named_so and len(filled) < len(whole) - 1):
        return None
    for delimiter in _DELIMITERS:
        try:
            rows = list(csv.reader(filled, delimiter=delimiter))
        except csv.Error:
            continue
        widths = {len(row) for row in rows}
        # Rows of different widths mean that the delimiter is part of sentences.
        if len(widths) == 1 and widths.pop() > 1 and (is_named_so or _is_terse(rows)):
            return delimiter
    return None


def _is_terse(rows: list[list[str]]) -> bool:
    return all(len(cell) <= LONGEST_CELL and not cell.rstrip().endswith(".") for row in rows for cell in row)


def explore_table(seen: Seen) -> list[str]:
    text = seen.text or ""
    delimiter = delimiter_of(text, is_named_so=True) or ","
    rows: list[list[str]] = []
    broken = ""
    try:
        for row in islice(csv.reader(_lines(text, is_whole=seen.is_whole), delimiter=delimiter), MOST_ROWS):
            rows.append(row)
            if seen.is_late:
                break
    except csv.Error as wrong:
        broken = f"; row {len(rows) + 1} cannot be read: {wrong}"
    rows = [row for row in rows if row]
    if not rows:
        return [f"no row can be read{broken}"]
    header, body = _header(rows)
    all_read = seen.is_whole and len(rows) < MOST_ROWS and not broken
    count = len(body) if all_read else max(seen.lines - (body is not rows), 0)
    lines = [f"{counted(count, 'row')}{'' if all_read else ' at most'}, {counted(len(header), 'column')}{broken}"]
    for at, name in enumerate(header[:MOST_COLUMNS]):
        values = [row[at].strip() for row in body if at < len(row)]
        lines.append(f"  {cut(name.strip() or f'column {at + 1}', 60)}: {_type_of(values)}")
    if len(header) > MOST_COLUMNS:
        lines.append(f"  … {counted(len(header) - MOST_COLUMNS, 'column')} more")
    if len(body) < count:
        lines.append(f"(types and examples are of the first {counted(len(body), 'row')})")
    return lines


def _lines(text: str, *, is_whole: bool) -> Iterable[str]:
    lines = text.splitlines(keepends=True)
    return lines if is_whole else lines[:-1]


def _header(rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Return column names (numbers if the first row has no names) and rows."""
    first = rows[0]
    if any(_kind(name.strip()) not in ("text", "nothing") for name in first):
        return [f"column {at + 1}" for at in range(len(first))], rows
    return first, rows[1:]


def _kind(value: str) -> str:
    if value.lower() in _NOTHING:
        return "nothing"
    return next((kind for kind, pattern in _KINDS if pattern.fullmatch(value)), "text")


def _type_of(values: list[str]) -> str:
    kinds = {_kind(value) for value in values}
    is_sparse = "nothing" in kinds
    kinds.discard("nothing")
    if kinds == {"whole number", "number"}:
        kinds = {"number"}
    kind = kinds.pop() if len(kinds) == 1 else "text" if kinds else "nothing"
    example = next((value for value in values if _kind(value) != "nothing"), "")
    kind += ", some empty" if is_sparse and kind != "nothing" else ""
    return f"{kind}, such as {cut(example, 40)}" if example else kind
