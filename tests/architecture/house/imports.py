"""Find circular imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from tests.architecture.house.sources import Count, name, python_files, tree


def circles() -> Count:
    """Modules that import each other, even within functions or only for types."""
    graph = {module: set(_imported(path)) & set(_modules()) - {module} for module, path in _modules().items()}
    return Count.each([" <-> ".join(sorted(each)) for each in _components(graph) if len(each) > 1])


@cache
def _modules() -> Mapping[str, Path]:
    return {name(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in python_files()}


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            below = [f"{node.module}.{each.name}" for each in node.names]
            known = [each for each in below if each in _modules()]
            # `from package import module` depends on the module, not on the rest of the package.
            yield from known
            if len(known) < len(below):
                yield node.module


def _components(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Sets of modules in which each module imports each other one, even indirectly."""
    reached = {module: _reached(graph, module) for module in graph}
    found: list[set[str]] = []
    for module in graph:
        if not any(module in each for each in found):
            found.append({module} | {other for other in reached[module] if module in reached[other]})
    return found


def _reached(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen: set[str] = set()
    waiting = [start]
    while waiting:
        for other in graph[waiting.pop()] - seen:
            seen.add(other)
            waiting.append(other)
    return seen
