"""OpenAPI links: an id in an answer is a param of other operations."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from lcmsite.catalogue.operation import Operation, operation_id, placeholders


def links(operation: Operation) -> dict[str, Any]:
    """The links of an answer by the operations they lead to; none of a list."""
    from lcmsite.catalogue.operations import CATALOGUE

    found = {name: f"$response.body#/{name}" for name in _ids(operation.returns)}
    return {
        operation_id(other, other.path): {
            "operationId": operation_id(other, other.path),
            "parameters": {f"path.{name}": found[name] for name in needed},
        }
        for other in CATALOGUE
        if (needed := placeholders(other.path)) and other is not operation and found.keys() >= set(needed)
    }


def _ids(record: Any) -> list[str]:
    if not (is_dataclass(record) and isinstance(record, type)):
        return []
    return [each.name for each in fields(record) if each.name.endswith("_id") or each.name in ("id", "name")]
