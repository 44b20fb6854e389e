"""Edits of a host's files: each can be applied, recognized and undone. Pure.

The rest of the file stays byte for byte. If the text that an edit wrote was changed since, undoing leaves it in the
file, and `left_in` names it. All methods raise ValueError for a file that cannot be parsed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Self

from lcmsite.hosts import json_edits

_BLOCK = "lcm: written by `lcm connect`, removed by `lcm disconnect`"
_COMMENTS = {"#": ("# >>> {}", "# <<< {}"), "<!--": ("<!-- >>> {} -->", "<!-- <<< {} -->")}


class Taken(ValueError):
    """The entry to be written exists already, and LCM did not write it."""


@dataclass(frozen=True)
class _JsonEdit:
    """An edit at a path of keys in a JSON file, comments allowed."""

    path: tuple[str, ...]
    value: Any
    # How many keys of the path existed before the edit.
    kept: int = 0

    def placed(self, text: str) -> Self:
        return replace(self, kept=json_edits.depth_of(json_edits.value_of(text), self.path))

    def found_in(self, text: str) -> Any:
        """Return the value at the path; None if it is not there."""
        return json_edits.found_at(json_edits.value_of(text), self.path)

    def is_called_in(self, text: str) -> bool:
        """Whether a changed entry at the path still calls the edit's command."""
        return _calls(self.found_in(text), self.value)


@dataclass(frozen=True)
class JsonMember(_JsonEdit):
    """A member of an object in a JSON file."""

    kind: ClassVar[str] = "member"

    def is_in(self, text: str) -> bool:
        return bool(self.found_in(text) == self.value)

    def apply(self, text: str) -> str:
        if self.found_in(text) is not None:
            raise Taken(f"it has an entry {'.'.join(self.path)} that LCM did not write; rename or remove that first")
        return json_edits.with_member(text, self.path, self.value)

    def undo(self, text: str) -> str:
        return json_edits.without_member(text, self.path, keep=self.kept) if self.is_in(text) else text

    def left_in(self, text: str) -> str:
        return ".".join(self.path) if self.found_in(text) is not None else ""


@dataclass(frozen=True)
class JsonDefault(JsonMember):
    """A member that is written only if the file has none at its path."""

    kind: ClassVar[str] = "default"

    def is_in(self, text: str) -> bool:
        return self.found_in(text) is not None

    def apply(self, text: str) -> str:
        return text if self.is_in(text) else super().apply(text)

    def undo(self, text: str) -> str:
        is_ours = self.kept < len(self.path) and super().is_in(text)
        return json_edits.without_member(text, self.path, keep=self.kept) if is_ours else text

    def left_in(self, text: str) -> str:
        return super().left_in(text) if self.is_called_in(text) else ""


@dataclass(frozen=True)
class JsonElement(_JsonEdit):
    """An item of a list in a JSON file."""

    kind: ClassVar[str] = "element"

    def is_in(self, text: str) -> bool:
        found = self.found_in(text)
        return isinstance(found, list) and self.value in found

    def apply(self, text: str) -> str:
        return json_edits.with_element(text, self.path, self.value)

    def undo(self, text: str) -> str:
        return json_edits.without_element(text, self.path, self.value, keep=self.kept)

    def undo_changed(self, text: str) -> str:
        """Undo the edit, even if its item was changed; an item with additions stays."""
        if self.is_in(text):
            return self.undo(text)
        found = self.found_in(text)
        own = _object_count(self.value)
        changed = (
            each
            for each in (found if isinstance(found, list) else ())
            if _calls(each, self.value) and _object_count(each) == own
        )
        return replace(self, value=next(changed, self.value)).undo(text)

    def left_in(self, text: str) -> str:
        return f"LCM's item of {'.'.join(self.path)}" if self.is_called_in(text) else ""


@dataclass(frozen=True)
class TextBlock:
    """Lines at the end of a text, between marker comments (`#` or `<!--`).

    In TOML, `table` is the path of the table that the lines define.
    """

    kind: ClassVar[str] = "block"
    lines: str
    comment: str = "#"
    table: tuple[str, ...] = ()

    @property
    def block(self) -> str:
        begin, end = (each.format(_BLOCK) for each in _COMMENTS[self.comment])
        return f"{begin}\n{self.lines.rstrip()}\n{end}\n"

    def placed(self, text: str) -> Self:
        return self

    def is_in(self, text: str) -> bool:
        return self.block in text.replace("\r\n", "\n")

    def apply(self, text: str) -> str:
        if self.table and json_edits.found_at(_toml(text), self.table) is not None:
            raise Taken(f"it has a table {'.'.join(self.table)} that LCM did not write; rename or remove that first")
        newline = "\r\n" if "\r\n" in text else "\n"
        gap = "" if not text else newline if text.endswith("\n") else newline * 2
        new = text + gap + self.block.replace("\n", newline)
        if self.table:
            _toml(new)
        return new

    def undo(self, text: str) -> str:
        for newline in ("\n", "\r\n"):
            block = self.block.replace("\n", newline)
            before, found, after = text.partition(block)
            if found:
                return before.removesuffix(newline) + after if before.endswith(newline * 2) else before + after
        return text

    def left_in(self, text: str) -> str:
        with suppress(ValueError):
            if self.table and json_edits.found_at(_toml(text), self.table) is not None:
                return f"the table {'.'.join(self.table)}"
        return f"the lines between the marks `{_BLOCK}`" if _BLOCK in text else ""


@dataclass(frozen=True)
class WholeFile:
    """A file that only LCM writes."""

    kind: ClassVar[str] = "file"
    text: str

    def placed(self, text: str) -> Self:
        return self

    def is_in(self, text: str) -> bool:
        return text == self.text

    def apply(self, text: str) -> str:
        if text:
            raise Taken("there is another file of this name; move it away first")
        return self.text

    def undo(self, text: str) -> str:
        return "" if text == self.text else text

    def left_in(self, text: str) -> str:
        return "everything" if text else ""


Edit = JsonMember | JsonDefault | JsonElement | TextBlock | WholeFile
_KINDS: Mapping[str, Callable[..., Edit]] = {
    each.kind: each for each in (JsonMember, JsonDefault, JsonElement, TextBlock, WholeFile)
}


def as_plain(edit: Edit) -> dict[str, Any]:
    """Convert an edit to JSON, for the record of what was written."""
    return {"kind": edit.kind, **asdict(edit)}


def from_plain(row: Mapping[str, Any]) -> Edit:
    """Convert an edit back from its record."""
    values: dict[str, Any] = {
        name: tuple(value) if name in ("path", "table") else value for name, value in row.items() if name != "kind"
    }
    return _KINDS[row["kind"]](**values)


def is_empty(text: str) -> bool:
    """Whether a file's text has no content, or an empty object or list."""
    return text.strip() in ("", "{}", "[]")


def _calls(found: Any, value: Any) -> bool:
    """Whether a JSON value calls the same hook command as LCM's value."""
    # Only LCM writes this command; other values may be somebody else's.
    commands = [each for each in json_edits.texts_of(value) if " hook " in each]
    return any(command in each for command in commands for each in json_edits.texts_of(found))


def _object_count(value: Any) -> int:
    """Count the objects in a JSON value, itself included; an added hook is one more."""
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, dict) + sum(map(_object_count, below))


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise ValueError(f"it is not TOML that LCM can add to: {wrong}") from wrong
