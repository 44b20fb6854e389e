"""The examples of the OpenAPI document, from `examples.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Programs that test a running site import this module without Django.
    from lcmsite.catalogue.operation import Operation

_DATA: Mapping[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
EXAMPLES: Mapping[str, Any] = _DATA["params"]
PROBLEM_EXAMPLES: Mapping[str, Mapping[str, Any]] = _DATA["problems"]
PROBLEM_HEADERS: Mapping[str, Mapping[str, Any]] = _DATA["problem_headers"]


def examples_of(operation: Operation) -> dict[str, Any]:
    """Examples of the operation's params, by name, where there are any."""
    known = {**EXAMPLES, **_DATA["params_of_one_tool"].get(operation.tool, {})}
    return {name: known[name] for name in operation.params.model_fields if name in known}


def example_body(operation: Operation, *, without: Sequence[str]) -> dict[str, Any]:
    """An example of a valid request body, without the params in `without`."""
    left_out = (*without, *_DATA["left_out_of_bodies"].get(operation.tool, ()))
    return {name: value for name, value in examples_of(operation).items() if name not in left_out}
