"""The tools of the sample's agent. They really look at the files; what would be too long is cut, and says so. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from conversations.humanize import counted
from lcmsite.sample.code_base import CodeBase

MOST_LINES = 320
MOST_MATCHES = 60


class ToolError(Exception):
    """What a tool says when it cannot do what it was asked."""


@dataclass(frozen=True)
class Tools:
    code: CodeBase

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        """The output of a tool; ToolError with its complaint."""
        methods: dict[str, Callable[..., str]] = {
            "list_files": self.list_files,
            "read_file": self.read_file,
            "grep": self.grep,
            "run_tests": self.run_tests,
        }
        return methods[name](**arguments)

    def list_files(self, folder: str) -> str:
        """Every file of a folder with its length."""
        files = self.code.below(folder)
        if not files:
            raise ToolError(f"{folder}: no such folder")
        listed = [f"{len(file.lines):>5} {file.path}" for file in files]
        total = sum(len(file.lines) for file in files)
        return "\n".join([*listed, f"{total:>5} {'line' if total == 1 else 'lines'} in {counted(len(files), 'file')}"])

    def read_file(self, path: str, first_line: int = 1, last_line: int | None = None) -> str:
        """Numbered lines of a file."""
        file = self.code.file(path)
        if file is None:
            near = difflib.get_close_matches(path, [each.path for each in self.code.files], n=1)
            raise ToolError(f"{path}: no such file{f'; did you mean {near[0]}?' if near else ''}")
        wanted = file.lines[first_line - 1 : last_line]
        shown = [f"{number:>5}\t{line}" for number, line in enumerate(wanted[:MOST_LINES], start=first_line)]
        left_out = len(wanted) - len(shown)
        return "\n".join([*shown, *([f"... {counted(left_out, 'more line')}, not shown"] if left_out else [])])

    def grep(self, pattern: str, folder: str = ".") -> str:
        """Lines that match, each with its place."""
        wanted = re.compile(pattern, re.MULTILINE)
        found = [
            f"{file.path}:{number}: {line.strip()}"
            for file in self.code.below(folder)
            if wanted.search(file.text)
            for number, line in enumerate(file.lines, start=1)
            if wanted.search(line)
        ]
        left_out = len(found) - MOST_MATCHES
        more = [f"... {counted(left_out, 'more match', 'more matches')}, not shown"] if left_out > 0 else []
        return "\n".join([*found[:MOST_MATCHES], *more]) or "no matches"

    def run_tests(self, path: str, collect_only: bool) -> str:
        """The names of a file's tests, which is all that the sample asks for."""
        file = self.code.file(path)
        if file is None or not collect_only:
            raise ToolError(f"{path}: nothing to collect")
        names = [each.name for each in file.definitions if each.name.startswith("test_")]
        return "\n".join([*(f"{path}::{name}" for name in names), "", f"{len(names)} test functions collected"])
