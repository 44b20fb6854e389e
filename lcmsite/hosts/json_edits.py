"""Edit a JSON text in place; comments and formatting stay. Pure.

Comments (`//`, `/* */`) and trailing commas are accepted and kept. Raises ValueError if the text is not JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_SCALAR = re.compile(r"[^\s,\]}/]+")
_BLANK = " \t\r\n"


@dataclass
class Node:
    """A value and its position in the text, with a list's items or object's members."""

    start: int
    end: int
    value: Any
    items: list[Node] = field(default_factory=list)
    members: list[Member] = field(default_factory=list)


@dataclass
class Member:
    key: str
    # Where the key starts; the member ends with its node.
    start: int
    node: Node


def parse(text: str) -> Node:
    """Parse a text; an empty text is an empty object of zero length."""
    begin = 1 if text.startswith("\ufeff") else 0
    start = _skip(text, begin)
    if start == len(text):
        return Node(start, start, {})
    node = _value(text, start)
    if _skip(text, node.end) != len(text):
        raise ValueError(f"there is more behind the value, at character {node.end}")
    return node


def value_of(text: str) -> Any:
    return parse(text).value


def found_at(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of keys; None if it is not there."""
    for key in path:
        if not isinstance(value, dict) or key not in value:
            return None
        value = value[key]
    return value


def texts_of(value: Any) -> list[str]:
    """Return all strings in a value, without keys."""
    if isinstance(value, str):
        return [value]
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for each in below for text in texts_of(each)]


def with_member(text: str, path: Sequence[str], value: Any) -> str:
    """Add a member at a path, with missing objects above it."""
    root = parse(text)
    node, rest = root, list(path)
    while len(rest) > 1 and (below := _member(node, rest[0])) is not None:
        node, rest = below.node, rest[1:]
    for key in reversed(rest[1:]):
        value = {key: value}
    if not isinstance(node.value, dict):
        raise ValueError(f"{'.'.join(path[: len(path) - len(rest)]) or 'the file'} is not an object")
    return _added(text, root, node, value, key=rest[0])


def with_element(text: str, path: Sequence[str], value: Any) -> str:
    """Append an item to the list at a path, with missing parents."""
    root = parse(text)
    if found_at(root.value, path) is None:
        return with_member(text, path, [value])
    node = _node_at(root, path)
    if not isinstance(node.value, list):
        raise ValueError(f"{'.'.join(path)} is not a list")
    return _added(text, root, node, value)


def without_member(text: str, path: Sequence[str], *, keep: int = 0) -> str:
    """Remove a member, if it is there, and parents that become empty.

    The first `keep` keys of the path are never removed.
    """
    node = parse(text)
    if found_at(node.value, path[:-1]) is None or path[-1] not in found_at(node.value, path[:-1]):
        return text
    node = _node_at(node, path[:-1])
    member = _member(node, path[-1])
    assert member is not None, "the key is in the object"
    children = [(each.start, each.node.end) for each in node.members]
    text = _removed(text, node, children, (member.start, member.node.end))
    return _without_empty(text, path[:-1], keep)


def without_element(text: str, path: Sequence[str], value: Any, *, keep: int = 0) -> str:
    """Remove the first item equal to the value, and parents that become empty."""
    node = parse(text)
    items = found_at(node.value, path)
    if not isinstance(items, list) or value not in items:
        return text
    node = _node_at(node, path)
    children = [(each.start, each.end) for each in node.items]
    text = _removed(text, node, children, children[items.index(value)])
    return _without_empty(text, path, keep)


def _without_empty(text: str, path: Sequence[str], keep: int) -> str:
    if len(path) <= keep or found_at(value_of(text), path):
        return text
    return without_member(text, path, keep=keep)


def depth_of(value: Any, path: Sequence[str]) -> int:
    """Return how many keys of a path exist."""
    return next((n for n in range(len(path), 0, -1) if found_at(value, path[:n]) is not None), 0)


def _node_at(node: Node, path: Sequence[str]) -> Node:
    for key in path:
        member = _member(node, key)
        assert member is not None, "the path exists"
        node = member.node
    return node


def _member(node: Node, key: str) -> Member | None:
    return next((member for member in reversed(node.members) if member.key == key), None)


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> Node:
    if text.startswith(("{", "["), at):
        return _container(text, at)
    found = _STRING.match(text, at) or _SCALAR.match(text, at)
    if found is None:
        raise ValueError(f"there is no value at character {at}")
    return Node(at, found.end(), json.loads(found[0], strict=False))


def _container(text: str, start: int) -> Node:
    is_object = text[start] == "{"
    close = "}" if is_object else "]"
    node = Node(start, start, {} if is_object else [])
    at = _skip(text, start + 1)
    while not text.startswith(close, at):
        key, key_start = "", at
        if is_object:
            found = _STRING.match(text, at)
            colon = _skip(text, found.end()) if found else at
            if found is None or not text.startswith(":", colon):
                raise ValueError(f"there is no key at character {at}")
            key, at = json.loads(found[0], strict=False), _skip(text, colon + 1)
        child = _value(text, at)
        if is_object:
            node.members.append(Member(key, key_start, child))
            node.value[key] = child.value
        else:
            node.items.append(child)
            node.value.append(child.value)
        at = _skip(text, child.end)
        if text.startswith(",", at):
            at = _skip(text, at + 1)
        elif not text.startswith(close, at):
            raise ValueError(f"a comma or {close} is missing at character {at}")
    node.end = at + 1
    return node


def _added(text: str, root: Node, node: Node, value: Any, key: str | None = None) -> str:
    if node.start == node.end:
        # An empty file.
        return text + json.dumps({key: value}, indent=2, ensure_ascii=False) + "\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    step, outer = _indent(text, root), _line_indent(text, node.start)
    ends = [each.node.end for each in node.members] or [each.end for each in node.items]
    close = node.end - 1
    inside = text[node.start + 1 : close]
    in_lines = "\n" in inside or not ends
    head = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    if in_lines:
        lines = json.dumps(value, indent=step, ensure_ascii=False).split("\n")
        new = newline + outer + step + head + (newline + outer + step).join(lines)
    else:
        new = " " + head + json.dumps(value, ensure_ascii=False)
    # Insert after the last comment, before the white space in front of the bracket.
    at = node.start + 1 + len(inside.rstrip(_BLANK))
    tail = text[at:close] if ends else ""
    if in_lines and "\n" not in tail:
        tail = newline + outer
    comma = ""
    if ends:
        between = _skip(text, ends[-1])
        if not text.startswith(",", between):
            comma = ","
    before = text[: ends[-1]] + comma + text[ends[-1] : at] if ends else text[:at]
    return before + new + tail + text[close:]


def _removed(text: str, node: Node, children: list[tuple[int, int]], gone: tuple[int, int]) -> str:
    place = children.index(gone)
    start, end = gone
    comma = _skip(text, end)
    if len(children) == 1:
        inside = text[node.start + 1 : start] + text[comma + 1 if text[comma] == "," else end : node.end - 1]
        return text[: node.start + 1] + (inside.rstrip(_BLANK) if not inside.strip() else inside) + text[node.end - 1 :]
    begin = len(text[:start].rstrip(_BLANK))
    if text[comma] == ",":
        # Remove the comma after it, too.
        return text[:begin] + text[end:comma] + text[comma + 1 :]
    before = _skip(text, children[place - 1][1])
    return text[:before] + text[before + 1 : begin] + text[end:]


def _indent(text: str, root: Node) -> str:
    first = root.members[0].start if root.members else root.items[0].start if root.items else None
    found = "" if first is None else _line_indent(text, first)
    return found if found and "\n" in text[root.start : first] else "  "


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]
