"""The code base as the sample's agent finds it: this project's own files, and what they say about themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOMS = ("conversations", "compaction", "retrieval", "integrity", "lcmsite")
# Only beside manage.py are these ours: an installed package may have strangers of the same name for neighbours.
CHECKOUT_ONLY = ("tests", "templates", "docs")
SUFFIXES = {".py", ".sql", ".md"}

_TABLE = re.compile(r"^CREATE TABLE (\w+) \(\n(.*?)^\)", re.MULTILINE | re.DOTALL)
_COLUMN = re.compile(r"^  ([a-z]\w+) ", re.MULTILINE)


@dataclass(frozen=True)
class Definition:
    """One class or function of a file, with what can be read off it."""

    name: str
    kind: str
    line: int
    last_line: int
    signature: str
    doc: str
    node: ast.ClassDef | ast.FunctionDef

    @property
    def is_public(self) -> bool:
        return not self.name.split(".")[-1].startswith("_")

    @cached_property
    def calls(self) -> tuple[str, ...]:
        """Whatever has a name and is called in it."""
        called = (ast.unparse(each.func) for each in ast.walk(self.node) if isinstance(each, ast.Call))
        return tuple(dict.fromkeys(text for text in called if re.fullmatch(r"[\w.]+", text)))

    @cached_property
    def raises(self) -> tuple[str, ...]:
        raised = (each.exc for each in ast.walk(self.node) if isinstance(each, ast.Raise))
        return tuple(dict.fromkeys(ast.unparse(each.func) for each in raised if isinstance(each, ast.Call)))


@dataclass(frozen=True)
class Knob:
    """One setting, as its policy declares it."""

    name: str
    default: str
    help: str


@dataclass(frozen=True)
class CodeFile:
    path: str
    text: str

    @property
    def module(self) -> str:
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @property
    def is_test(self) -> bool:
        return self.path.startswith("tests/")

    @cached_property
    def lines(self) -> list[str]:
        return self.text.split("\n")[: -1 if self.text.endswith("\n") else None]

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text if self.path.endswith(".py") else "")

    @cached_property
    def doc(self) -> str:
        """What the file says it is for: its docstring, or the comment or heading that it begins with."""
        if self.path.endswith(".py"):
            return ast.get_docstring(self.tree) or ""
        said = [line.strip("-# ") for line in self.lines if line.startswith(("--", "# "))]
        return " ".join(said[:3])

    @cached_property
    def definitions(self) -> tuple[Definition, ...]:
        """Classes, their methods, and functions, in order."""
        return tuple(_definitions(self.tree))

    @cached_property
    def knobs(self) -> tuple[Knob, ...]:
        return tuple(_knobs(self.tree))

    @cached_property
    def tables(self) -> dict[str, list[str]]:
        """The columns of each table that an SQL file makes."""
        if not self.path.endswith(".sql"):
            return {}
        return {name: _COLUMN.findall(body) for name, body in _TABLE.findall(self.text)}


@dataclass(frozen=True)
class CodeBase:
    """All files, by path."""

    files: tuple[CodeFile, ...]

    @classmethod
    def read(cls, root: Path) -> CodeBase:
        """The project's files below `root`, which is a checkout or the place where the packages are installed."""
        folders = ROOMS + (CHECKOUT_ONLY if (root / "manage.py").is_file() else ())
        paths = [path for folder in folders for path in (root / folder).rglob("*") if path.suffix in SUFFIXES]
        files = (CodeFile(path.relative_to(root).as_posix(), path.read_text("utf-8")) for path in sorted(paths))
        return cls(tuple(file for file in files if file.text.strip()))

    def file(self, path: str) -> CodeFile | None:
        return next((file for file in self.files if file.path == path), None)

    def below(self, folder: str) -> tuple[CodeFile, ...]:
        """The files of a folder, or the one file of that path; all of them for `.`"""
        if folder == ".":
            return self.files
        return tuple(file for file in self.files if file.path == folder or file.path.startswith(f"{folder}/"))

    def importers(self, file: CodeFile) -> list[str]:
        """The files outside the tests that import this module, by path."""
        wanted = re.compile(
            rf"^\s*(from {re.escape(file.module)} import|import {re.escape(file.module)}$)", re.MULTILINE
        )
        others = (each for each in self.files if not each.is_test and each is not file and file.module in each.text)
        return [each.path for each in others if wanted.search(each.text)]

    def tests_of(self, file: CodeFile) -> CodeFile | None:
        folder, _, name = file.path.rpartition("/")
        return self.file(f"tests/{folder}/test_{name}")


def _definitions(tree: ast.Module) -> Iterator[Definition]:
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield _definition(node, node.name, "class", ", ".join(map(ast.unparse, node.bases)))
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield _definition(inner, f"{node.name}.{inner.name}", "method", ast.unparse(inner.args))
        elif isinstance(node, ast.FunctionDef):
            yield _definition(node, node.name, "function", ast.unparse(node.args))


def _definition(node: ast.ClassDef | ast.FunctionDef, name: str, kind: str, signature: str) -> Definition:
    return Definition(
        name=name,
        kind=kind,
        line=node.lineno,
        last_line=node.end_lineno or node.lineno,
        signature=signature,
        doc=ast.get_docstring(node) or "",
        node=node,
    )


def _knobs(tree: ast.Module) -> Iterator[Knob]:
    for node in ast.walk(tree):
        if not (isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Call) and len(node.value.args) == 2):
            continue
        called, (default, help) = ast.unparse(node.value.func), node.value.args
        if called == "knob" and isinstance(help, ast.Constant):
            yield Knob(ast.unparse(node.target), ast.unparse(default), str(help.value))
