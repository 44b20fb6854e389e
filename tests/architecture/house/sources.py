"""Read the files of the product, as text and as syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3]
ROOMS = ("conversations", "compaction", "retrieval", "integrity", "lcmsite")


@dataclass(frozen=True)
class Count:
    """A number, and the items that it counts."""

    value: int
    of: tuple[str, ...] = ()

    @classmethod
    def each(cls, found: Iterator[str] | list[str]) -> Count:
        names = tuple(sorted(found))
        return cls(len(names), names)


@cache
def python_files() -> tuple[Path, ...]:
    """Every Python file of the product, with migrations and `manage.py`."""
    rooms = (path for room in ROOMS for path in (PROJECT / room).rglob("*.py"))
    return tuple(sorted([*rooms, PROJECT / "manage.py"]))


@cache
def sql_files() -> tuple[Path, ...]:
    return tuple(sorted(path for room in ROOMS for path in (PROJECT / room).rglob("*.sql")))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def trees(*, holding: str = "") -> Iterator[tuple[str, ast.Module]]:
    """Yield names and syntax trees of the files whose text contains `holding`."""
    for path in python_files():
        if holding in path.read_text():
            yield name(path), tree(path)


def name(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def lines(path: Path) -> int:
    return path.read_text().count("\n")


def docstrings(module: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield each docstring with the line on which it begins."""
    for node in ast.walk(module):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield node.body[0].lineno, text
