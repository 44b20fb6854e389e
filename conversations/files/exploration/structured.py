"""Describe the structure of JSON, JSON Lines, YAML and XML. Pure.

Only the first HEAD_BYTES of a file are read. YAML is composed into nodes, and no Python objects are constructed. Each
use of an alias counts against the maximum number of nodes, so an alias bomb is harmless.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any
from xml.parsers import expat

import pydantic_core
import yaml

from conversations.files.exploration.glance import MOST_LINES, Seen, cut
from conversations.humanize import counted

MOST_NODES = 20_000
MOST_DEPTH = 6
MOST_KEYS = 30
MOST_ROWS = 1000
# The composer is slow, so the length is limited.
YAML_CHARACTERS = 32 * 1024
MOST_BRACKETS_OPEN = 100


@dataclass
class Shape:
    """The types of the values at one path of the structure, over all rows."""

    # The types, in the order of their first occurrence.
    kinds: dict[str, None] = field(default_factory=dict)
    keys: dict[str, Shape] = field(default_factory=dict)
    key_count: int = 0
    inside: Shape | None = None
    lengths: list[int] = field(default_factory=list)

    @property
    def description(self) -> str:
        """Describe the types: `text`, `whole number or nothing`, `list of 3`."""
        types = []
        for kind in self.kinds:
            if kind == "list":
                least, most = min(self.lengths), max(self.lengths)
                types.append(f"list of {least:,}" if least == most else f"list of {least:,} to {most:,}")
            elif kind == "object":
                types.append(f"object of {counted(self.key_count, 'key')}")
            else:
                types.append(kind)
        return " or ".join(types)


@dataclass
class _Look:
    """One walk through a structure, with a maximum number of nodes."""

    seen: Seen
    nodes: int = MOST_NODES

    def at(self, value: Any, shape: Shape, depth: int = 0) -> None:
        self.nodes -= 1
        if self.nodes < 0 or self.seen.is_late:
            return
        match value:
            case yaml.MappingNode() | dict():
                pairs = _pairs(value)
                shape.kinds["object"] = None
                shape.key_count = max(shape.key_count, len(pairs))
                for key, inner in pairs[:MOST_KEYS] if depth < MOST_DEPTH else ():
                    if key in shape.keys or len(shape.keys) < MOST_KEYS:
                        self.at(inner, shape.keys.setdefault(key, Shape()), depth + 1)
            case yaml.SequenceNode() | list():
                rows = value.value if isinstance(value, yaml.SequenceNode) else value
                shape.kinds["list"] = None
                shape.lengths.append(len(rows))
                shape.inside = shape.inside or Shape()
                for row in rows[:MOST_ROWS] if depth < MOST_DEPTH else ():
                    self.at(row, shape.inside, depth + 1)
            case yaml.ScalarNode():
                shape.kinds[_YAML_KINDS.get(value.tag.rpartition(":")[2], "text")] = None
            case _:
                shape.kinds[_JSON_KINDS.get(type(value), "text")] = None


def _pairs(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return list(value.items())
    return [(str(key.value) if isinstance(key, yaml.ScalarNode) else "(a key)", inner) for key, inner in value.value]


_YAML_KINDS = {
    "int": "whole number",
    "float": "number",
    "bool": "true or false",
    "null": "nothing",
    "timestamp": "date",
}
_JSON_KINDS = {type(None): "nothing", bool: "true or false", int: "whole number", float: "number"}


def shape_of(value: Any, seen: Seen) -> list[str]:
    """Describe a structure in indented lines."""
    shape = Shape()
    _Look(seen).at(value, shape)
    lines = list(_lines(shape, name="", depth=0))
    return lines[:MOST_LINES] + (["…"] if len(lines) > MOST_LINES else [])


def _lines(shape: Shape, *, name: str, depth: int) -> Iterator[str]:
    types = shape.description
    inside = shape.inside
    while inside is not None and inside.kinds:
        types += f" × {inside.description}"
        shape, inside = inside, inside.inside
    yield f"{'  ' * depth}{cut(name, 60)}{': ' if name else ''}{cut(types)}"
    for key, inner in shape.keys.items():
        yield from _lines(inner, name=key or '""', depth=depth + 1)
    if shape.key_count > len(shape.keys) and shape.keys:
        yield f"{'  ' * (depth + 1)}… {counted(shape.key_count - len(shape.keys), 'key')} more"


def read_json(text: str, *, is_whole: bool) -> Any:
    """Parse JSON, or the complete part of a truncated text; ValueError if invalid."""
    return pydantic_core.from_json(text, allow_partial=not is_whole, cache_strings=False)


def is_json(text: str, *, is_whole: bool) -> bool:
    """Whether the text is a JSON object or list."""
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        return isinstance(read_json(text, is_whole=is_whole), dict | list)
    except ValueError:
        return False


def is_json_lines(text: str, *, is_whole: bool) -> bool:
    """Whether the text has several lines, and the first ones are JSON objects."""
    lines = _rows(text, is_whole=is_whole)[:5]
    try:
        return len(lines) > 1 and all(isinstance(json.loads(line), dict) for line in lines)
    except (ValueError, RecursionError):
        return False


def _rows(text: str, *, is_whole: bool) -> list[str]:
    rows = text.split("\n", MOST_ROWS + 1)
    if not is_whole or len(rows) > MOST_ROWS:
        rows = rows[:-1]
    return [row for row in rows if row.strip()]


def explore_json(seen: Seen) -> list[str]:
    return shape_of(read_json(seen.text or "", is_whole=seen.is_whole), seen)


def explore_json_lines(seen: Seen) -> list[str]:
    rows = []
    for row in _rows(seen.text or "", is_whole=seen.is_whole):
        try:
            rows.append(read_json(row, is_whole=True))
        except ValueError:
            rows.append("a line that is not JSON")
    lines = shape_of(rows, seen)
    looked_at = "" if len(rows) == seen.lines else f" (of the first {counted(len(rows), 'line')})"
    return [f"each line{looked_at}:", *lines[1:]] if lines[1:] else lines


def _composed(text: str) -> yaml.Node | None:
    if len(text) > YAML_CHARACTERS:
        # Cut before the last line without indentation: everything before it is complete.
        head = text[:YAML_CHARACTERS]
        ends = [at for at in range(len(head) - 1, 0, -1) if head[at - 1] == "\n" and not head[at].isspace()]
        text = head[: ends[0]] if ends else head
    open_brackets = accumulate((character in "[{") - (character in "]}") for character in text)
    if max(open_brackets, default=0) > MOST_BRACKETS_OPEN:
        # The scanner would try each bracket as the start of a key.
        raise yaml.YAMLError("it is nested too deeply")
    return next(iter(yaml.compose_all(text, Loader=yaml.SafeLoader)), None)


def is_yaml(text: str) -> bool:
    """Whether the text is a YAML mapping or list."""
    try:
        return isinstance(_composed(text), yaml.MappingNode | yaml.SequenceNode)
    except (yaml.YAMLError, RecursionError):
        return False


def explore_yaml(seen: Seen) -> list[str]:
    return shape_of(_composed(seen.text or ""), seen)


def explore_xml(seen: Seen) -> list[str]:
    """Count elements by path, without resolving entities."""
    counts: dict[str, int] = {}
    path: list[str] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        # The parser adds all attributes of a declaration to each element.
        if seen.is_late:
            raise ValueError("it takes too long")
        path.append(name)
        where = "/".join(path[:MOST_DEPTH])
        if len(path) <= MOST_DEPTH and (where in counts or len(counts) < MOST_LINES):
            counts[where] = counts.get(where, 0) + 1

    def refuse(*_: Any) -> None:
        raise ValueError("it declares entities")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(seen.head, seen.is_whole)
    except expat.ExpatError as wrong:
        return [*_paths(counts), f"not well formed: {wrong}"]
    except ValueError as wrong:
        return [f"not explored: {wrong}"]
    return _paths(counts)


def _paths(counts: dict[str, int]) -> list[str]:
    return [cut(where if count == 1 else f"{where} × {count:,}") for where, count in counts.items()]
