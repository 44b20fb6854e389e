"""Check the language: denied words, long first lines, speeds and history."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.house.sources import Count, docstrings, name, python_files, sql_files, tree, trees

DENIED = {"told", "said", "asked", "meant", "stands", "nobody", "whoever", "hardly"}
LONGEST_FIRST_LINE = 79
_SHARES = "half|(?:a|an|one) (?:third|quarter|fifth|sixth|eighth|tenth|twelfth|twentieth)"
SPEED_OR_HISTORY = re.compile(
    rf"\b(?:faster|slower|quicker)\b|\d\s?(?:us|µs)\b"
    rf"|\b(?:took|takes?) (?:\w+ )?(?:as long|longest|longer to|{_SHARES})\b|(?:{_SHARES}) of (?:its|the) time"
    r"|\b(?:it|they|there|this|which) used to\b|\bused to be\b|\b(?:previously|formerly|historically)\b|\bR@\d+",
    re.I,
)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def denied_words() -> Count:
    """Denied words in names of files, classes, functions, arguments and variables."""
    return Count.each({f"{file} {given}" for file, given in _given_names() if _words(given) & DENIED})


def denied_first_lines() -> Count:
    """Denied words in the first lines of docstrings."""
    found = _first_lines()
    return Count.each([f"{where} {line}" for where, line in found if set(re.findall(r"[a-z]+", line.lower())) & DENIED])


def long_first_lines() -> Count:
    """First lines of docstrings of over 79 characters."""
    return Count.each([f"{where} {line}" for where, line in _first_lines() if len(line) > LONGEST_FIRST_LINE])


def speeds_and_history() -> Count:
    """Speeds and history in comments and docstrings, also of SQL.

    Measurements belong in docs/figures.md, history in git.
    """
    found = [
        f"{file}:{number} {hit[0]}"
        for file, number, text in _texts()
        if "/fast/" not in file and (hit := SPEED_OR_HISTORY.search(text))
    ]
    return Count.each(found)


def _first_lines() -> Iterator[tuple[str, str]]:
    for file, module in trees():
        for number, text in docstrings(module):
            yield f"{file}:{number}", text.partition("\n")[0]


def _words(given: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(given)}


def _given_names() -> Iterator[tuple[str, str]]:
    for path in (*python_files(), *sql_files()):
        yield name(path), path.stem
    for file, module in trees():
        for node in ast.walk(module):
            match node:
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    yield file, node.name
                case ast.arg():
                    yield file, node.arg
                case ast.Name(ctx=ast.Store()):
                    yield file, node.id
                case ast.alias(asname=str(given)):
                    yield file, given


def _texts() -> Iterator[tuple[str, int, str]]:
    """Yield docstrings and comments with file and line; a block of comments is one."""
    for path in python_files():
        for number, text in docstrings(tree(path)):
            yield name(path), number, " ".join(text.split())
        yield from _joined(path, _comments(path))
    for path in sql_files():
        rows = enumerate(path.read_text().splitlines(), 1)
        yield from _joined(path, [(number, row.strip("- ")) for number, row in rows if row.lstrip().startswith("--")])


def _comments(path: Path) -> list[tuple[int, str]]:
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return [(each.start[0], each.string.strip("# ")) for each in tokens if each.type == tokenize.COMMENT]


def _joined(path: Path, rows: list[tuple[int, str]]) -> Iterator[tuple[str, int, str]]:
    begun, text, last = 0, "", -1
    for number, row in rows:
        if number != last + 1 and text:
            yield name(path), begun, text
            text = ""
        begun, text, last = (number, row, number) if not text else (begun, f"{text} {row}", number)
    if text:
        yield name(path), begun, text
