"""Count bypasses of the framework, and type systems for input."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator

from tests.architecture.house.sources import PROJECT, ROOMS, Count, name, python_files, trees

# Internal classes of Django and psycopg, which LCM must not extend.
NO_BASES = {"WSGIHandler", "Atomic", "ConnectionPool", "WSGIRequest", "BaseHandler"}
# Documented attributes of Django with names that look private.
DOCUMENTED = ["_meta", "_default_manager", "_base_manager"]
INPUT_TYPES = {
    "fields of DRF's serializers": r"^from rest_framework(?:.serializers)? import .*(?:serializers|Field)",
    "Params of our own": r"^class Params\b(?!\(\w*Model)",
    "schemas of pydantic-core by hand": r"\bSchemaValidator\b",
    "models of pydantic": r"^(?:from|import) pydantic\b",
    "JSON Schema by hand": r"""["']properties["']: \{""",
    "checks of types in services": r"isinstance\(\w+, bool\) or not isinstance",
}


def private_names() -> Count:
    """Uses of private names of other packages and modules: attributes and imports."""
    return Count.each([*_private_attributes(), *_private_imports()])


def _private_attributes() -> Iterator[str]:
    options = ["--isolated", "--select", "SLF001", "--output-format", "json", "--exit-zero"]
    known = f"lint.flake8-self.extend-ignore-names = {json.dumps(DOCUMENTED)}"
    command = [sys.executable, "-m", "ruff", "check", *options, "--config", known, *ROOMS, "manage.py"]
    found = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout
    for each in json.loads(found):
        file = each["filename"].removeprefix(f"{PROJECT}/")
        yield f"{file}:{each['location']['row']} {each['message']}"


def _private_imports() -> Iterator[str]:
    for file, module in trees():
        for node in ast.walk(module):
            if isinstance(node, ast.ImportFrom):
                hidden = [each.name for each in node.names if re.match(r"_[a-z]", each.name)]
                hidden += [node.module] if re.search(r"(^|\.)_[a-z]", node.module or "") else []
                yield from (f"{file}:{node.lineno} imports {each}" for each in hidden)


def framework_subclasses() -> Count:
    """Subclasses of the framework's internal classes, and own `dispatch` methods."""
    found = []
    for file, module in trees():
        for node in ast.walk(module):
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                found += [f"{file}:{node.lineno} class {node.name}({each})" for each in bases & NO_BASES]
                named = (each.name for each in node.body if isinstance(each, ast.FunctionDef))
                found += [f"{file}:{node.lineno} {node.name}.dispatch" for each in named if each == "dispatch"]
    return Count.each(found)


def views_around_drf() -> Count:
    """URL patterns under /api/v1/ whose view is not an APIView."""
    from django.urls import URLPattern, get_resolver
    from rest_framework.views import APIView

    def below(patterns: list, prefix: str) -> Iterator[str]:
        for each in patterns:
            path = prefix + str(each.pattern)
            if not isinstance(each, URLPattern):
                yield from below(each.url_patterns, path)
            elif path.startswith("api/v1/") and not issubclass(getattr(each.callback, "cls", object), APIView):
                yield f"/{path}"

    return Count.each(below(get_resolver().url_patterns, ""))


def input_type_systems() -> Count:
    """Kinds of type definitions for input that the product uses."""
    texts = [path.read_text() for path in python_files()]
    found = [kind for kind, sign in INPUT_TYPES.items() if any(re.search(sign, text, re.M) for text in texts)]
    return Count.each(found)


def serializers() -> Count:
    """Modules that use DRF's serializers, which would be a second type system."""
    sign = re.compile(INPUT_TYPES["fields of DRF's serializers"], re.M)
    return Count.each([name(path) for path in python_files() if sign.search(path.read_text())])
