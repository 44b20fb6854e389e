"""A JSON Schema as an indented outline: one line a field, references followed, texts left out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

TEXTS = ("title", "summary", "description")
EXAMPLES = ("example", "examples")
_EITHER = ("anyOf", "oneOf", "allOf")


@dataclass(frozen=True)
class Outline:
    """Renders schemas that refer to one another, without what is written for people."""

    named: Mapping[str, Any]

    def lines(self, name: str, schema: Any, *, depth: int, within: tuple[str, ...] = ()) -> Iterator[str]:
        """The schema and all below it. A record within itself is only named."""
        schema, within, again = self._followed(schema, within)
        if again:
            yield f"{'  ' * depth}{name} (again: {again})"
            return
        children = dict(_children(schema))
        yield f"{'  ' * depth}{name} {_keywords(schema, children)}".rstrip()
        for each, child in children.items():
            yield from self.lines(each, child, depth=depth + 1, within=within)

    def _followed(self, schema: Any, within: tuple[str, ...]) -> tuple[Any, tuple[str, ...], str]:
        """What a reference, or a schema of one reference and null, stands for."""
        if not isinstance(schema, dict):
            return {"schema": schema}, within, ""
        schema = _without_null(schema)
        reference = schema.get("$ref")
        if reference is None:
            return schema, within, ""
        name = reference.rpartition("/")[2]
        if name in within:
            return schema, within, name
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        followed, within, again = self._followed(self.named[name], (*within, name))
        return {**followed, **beside}, within, again


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Something or null, however it is written: the schema of something, marked."""
    for key in _EITHER:
        choices = schema.get(key, ())
        others = [each for each in choices if each != {"type": "null"}]
        if len(others) == 1 and (len(choices) == 2 or key == "allOf"):
            beside = {name: value for name, value in schema.items() if name != key}
            return _without_null({**others[0], **beside}) | ({"or null": True} if len(choices) == 2 else {})
    if isinstance(schema.get("type"), list) and "null" in schema["type"]:
        kinds = [each for each in schema["type"] if each != "null"]
        return {**schema, "type": kinds[0] if len(kinds) == 1 else kinds, "or null": True}
    return schema


def _children(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    required = schema.get("required", ())
    for name, child in sorted(schema.get("properties", {}).items()):
        yield f"{name}{'*' if name in required else ''}", child
    if "items" in schema:
        yield "[]", schema["items"]
    if isinstance(schema.get("additionalProperties"), dict) and schema["additionalProperties"]:
        yield "{}", schema["additionalProperties"]
    for key in _EITHER:
        for number, child in enumerate(schema.get(key, ()), 1):
            yield f"{key} {number}", child


def _keywords(schema: Mapping[str, Any], children: Mapping[str, Any]) -> str:
    """The type, and whatever else narrows it."""
    apart = {"type", "or null", "properties", "required", "items", *TEXTS, *EXAMPLES, *_EITHER}
    if "{}" in children:
        apart.add("additionalProperties")
    rest = {key: value for key, value in schema.items() if key not in apart}
    if "const" in rest:
        rest["enum"] = [rest.pop("const")]
    kind = schema.get("type", "")
    words = [kind if isinstance(kind, str) else "/".join(kind)]
    words += ["or null"] if "or null" in schema else []
    words += [f"{key}={json.dumps(value, sort_keys=True)}" for key, value in sorted(rest.items())]
    return " ".join(filter(None, words))
