"""The outward faces of LCM, each as one text: what programs and people outside rely on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from django.core.management import get_commands, load_command_class
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from lcmsite.catalogue.problems import EXIT_CODES
from lcmsite.cli.program import MANAGEMENT, parser_of, verbs
from lcmsite.environment import variables
from lcmsite.mcp.resources import PROMPTS
from lcmsite.mcp.tool_list import tools
from tests.frozen import database, error_codes
from tests.frozen.openapi import outlined
from tests.frozen.shapes import Outline

_WORD_OF_USAGE = re.compile(r"\[[^\]]*\]+|\S+")
_FAMILY = re.compile(r"^# TYPE (\S+ \S+)$", re.M)


def faces() -> dict[str, str]:
    """The faces by file name, without the texts for people, which may get better at any time."""
    return {
        "openapi.txt": outlined(json.loads(_get("/api/v1/schema/"))),
        "mcp.txt": "\n".join(_tools()),
        "command_line.txt": _usages(),
        "exit_codes.txt": _lines(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()),
        "error_codes.txt": _lines(
            f"{each.code}: status {each.status}, exit {each.exit_code}{', retryable' if each.retryable else ''}"
            for each in error_codes.refusals()
        ),
        "settings.txt": _settings(),
        "pages.txt": _lines(sorted(_paths(get_resolver()))),
        "metrics.txt": _lines(sorted(set(_FAMILY.findall(_get("/metrics"))))),
        "schema.sql": database.schema(),
    }


def _get(path: str) -> str:
    response = Client(headers={"host": "localhost"}).get(path)
    assert response.status_code == 200, f"{path} answers {response.status_code}"
    return response.content.decode()


def _tools() -> Iterator[str]:
    for tool in tools():
        hints = {name: value for name, value in tool.annotations.model_dump(exclude_none=True).items() if value}
        yield f"tool {tool.name} {' '.join(hints)}".rstrip()
        for name, schema in (("takes", tool.input_schema), ("gives", tool.output_schema)):
            outline = Outline(schema.get("$defs", {}))
            yield from outline.lines(name, {key: value for key, value in schema.items() if key != "$defs"}, depth=1)
    yield from (f"prompt {prompt.name} {' '.join(each.name for each in prompt.arguments or ())}" for prompt in PROMPTS)
    yield ""


def _parsers() -> Iterator[tuple[str, Any]]:
    for name in MANAGEMENT:
        yield name, load_command_class(get_commands()[name], name).create_parser("lcm", name)
    for name, verb in sorted(verbs().items()):
        yield name, parser_of(verb)


def _usages() -> str:
    """A verb a paragraph: what stands in a fixed order first, then its options."""
    paragraphs = []
    with patch.dict(os.environ, COLUMNS="10000"):
        for name, parser in _parsers():
            words = _WORD_OF_USAGE.findall(parser.format_usage().removeprefix(f"usage: lcm {name}"))
            options = sorted(word for word in words if word.startswith("[-"))
            paragraphs.append("\n  ".join([f"lcm {name}", *(word for word in words if word not in options), *options]))
    return "\n".join(paragraphs) + "\n"


def _settings() -> str:
    lines = []
    for name, each in variables().items():
        bounds = {key: each.knob.metadata.get(key) for key in ("low", "high", "choices")}
        limits = [f"{key} {value}" for key, value in bounds.items() if value is not None]
        file = "[_FILE]" if each.is_secret else ""
        lines.append(f"{name}{file} = {each.default!r} {', '.join(limits)}".rstrip())
    return _lines(sorted(lines))


def _paths(resolver: URLResolver, prefix: str = "") -> Iterator[str]:
    """Every address but the administration's and the API's, which has a face of its own."""
    for each in resolver.url_patterns:
        path = prefix + str(each.pattern)
        if path.startswith(("admin/", "api/")):
            continue
        if isinstance(each, URLPattern):
            yield f"/{path}"
        else:
            yield from _paths(each, path)


def _lines(lines: Any) -> str:
    return "".join(f"{line}\n" for line in lines)
