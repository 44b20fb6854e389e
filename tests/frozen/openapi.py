"""The OpenAPI document as an outline: an operation a paragraph, refusals that many share once at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tests.frozen.shapes import Outline

VERBS = ("get", "post", "put", "patch", "delete")


def outlined(document: Mapping[str, Any]) -> str:
    """Every operation with what it takes and gives."""
    outline = Outline(document["components"]["schemas"])
    shared: dict[str, str] = {}
    paragraphs = [
        "\n".join(_operation(outline, f"{verb.upper()} {path}", item[verb], shared))
        for path, item in sorted(document["paths"].items())
        for verb in VERBS
        if verb in item
    ]
    known = [f"{name}\n{text}" for text, name in sorted(shared.items(), key=lambda each: each[1])]
    return "\n\n".join([*paragraphs, *known]) + "\n"


def _operation(outline: Outline, name: str, operation: Mapping[str, Any], shared: dict[str, str]) -> Iterator[str]:
    yield f"{name} {operation['operationId']}"
    for each in sorted(operation.get("parameters", ()), key=lambda each: (each["in"], each["name"])):
        yield from _parameter(outline, f"{each['in']} {each['name']}", each, depth=1)
    for kind, body in operation.get("requestBody", {}).get("content", {}).items():
        yield from outline.lines(f"body {kind}", body.get("schema", {}), depth=1)
    for status, response in sorted(operation["responses"].items()):
        text = "\n".join(_response(outline, response))
        if status < "400":
            yield f"  {status}"
            yield from text.splitlines()
        else:
            alike = [each for each in shared.values() if each.startswith(f"refusal {status}")]
            yield f"  {status} {shared.setdefault(text, f'refusal {status}.{len(alike) + 1}')}"


def _response(outline: Outline, response: Mapping[str, Any]) -> Iterator[str]:
    for name, header in sorted(response.get("headers", {}).items()):
        yield from _parameter(outline, f"header {name}", header, depth=2)
    for kind, content in response.get("content", {}).items():
        yield from outline.lines(kind, content.get("schema", {}), depth=2)


def _parameter(outline: Outline, name: str, parameter: Mapping[str, Any], *, depth: int) -> Iterator[str]:
    """A parameter or a header: its schema, and what is said beside it."""
    beside = {key: parameter[key] for key in ("style", "explode") if key in parameter}
    star = "*" if parameter.get("required") else ""
    yield from outline.lines(f"{name}{star}", {**parameter.get("schema", {}), **beside}, depth=depth)
