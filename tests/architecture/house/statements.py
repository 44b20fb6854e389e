"""Count SQL in Python files: more than three lines belong into a `.sql` file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.architecture.house.sources import Count, trees

MOST_LINES = 3
_STATEMENT = re.compile(
    r"^\s*(?:SELECT\s|WITH\s(?:RECURSIVE\s)?\w+|INSERT\sINTO\s|UPDATE\s\w|DELETE\sFROM\s|CREATE\s(?:TABLE|INDEX|UNIQUE|FUNCTION|OR"
    r"|TRIGGER|DATABASE)|ALTER\sTABLE|DROP\s(?:TABLE|INDEX|DATABASE|SCHEMA)|TRUNCATE\s|LOCK\sTABLE|EXPLAIN\s|COPY\s)"
)
_SQL = re.compile(r"\b(?:SELECT|FROM|WHERE|EXISTS|JOIN|ORDER BY|UPDATE|INSERT INTO|DELETE FROM)\b.*\b[a-z_]+\b", re.S)


def sql_statements() -> Count:
    """Statements written in Python, of any length."""
    return Count.each([where for where, text in _texts() if _STATEMENT.match(text)])


def long_sql() -> Count:
    """SQL of more than three lines in Python, statements and fragments."""
    return Count.each([f"{where} {n} lines" for where, text in _texts() if (n := _lines_of_sql(text)) > MOST_LINES])


def _lines_of_sql(text: str) -> int:
    return len([line for line in text.splitlines() if line.strip()]) if _SQL.search(text) else 0


def _texts() -> Iterator[tuple[str, str]]:
    """Yield every string that is not a docstring, with its file and line."""
    for file, module in trees():
        if "/migrations/" in file:
            continue
        apart = {id(node.value) for node in ast.walk(module) if isinstance(node, ast.Expr)}
        for node in ast.walk(module):
            if isinstance(node, ast.JoinedStr):
                # The parts of an f-string do not count as strings of their own.
                apart |= {id(part) for part in node.values}
                yield f"{file}:{node.lineno}", "".join(_text_of(part) for part in node.values)
        for node in ast.walk(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
                yield f"{file}:{node.lineno}", node.value


def _text_of(part: ast.expr) -> str:
    return str(part.value) if isinstance(part, ast.Constant) else "x"
