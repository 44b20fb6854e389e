"""Convert the parts of messages to rows; refuse values of a wrong type or size."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

from conversations.content import hashing
from conversations.content.lossless_values import is_bounded_decimal, split
from conversations.types import NewPart, PartType

# The type of each column of a part, without None; `object` for JSON, which may have any type.
_TYPES: dict[str, type] = {
    name: kind if isinstance(kind := (get_args(hint) or (None,))[0], type) else object
    for name, hint in get_type_hints(NewPart).items()
}
# Columns whose values have limits of their own; most parts do not have them.
_BOUNDED = frozenset({"patch_files", "step_tokens_in", "step_tokens_out", "step_cost"})


def part_row_of(part: NewPart) -> dict[str, Any]:
    """Convert a part to column values; ValueError if a value has a wrong type."""
    values = {name: value for name, value in vars(part).items() if value is not None and name in _TYPES}
    values["part_type"] = PartType(part.part_type)
    for name, value in values.items():
        kind = _TYPES[name]
        if type(value) is not kind and (not isinstance(value, kind) or (kind is int and isinstance(value, bool))):
            raise ValueError(f"{name} must be of the type {kind.__name__}, not {type(value).__name__}.")
    if not _BOUNDED.isdisjoint(values):
        _check_bounds(values)
    columns, exact = split(values)
    if "step_cost" in values:
        columns["step_cost"] = format(values["step_cost"], "f")
    columns["part_hash"] = hashing.part_hash(values | exact).hex()
    if exact:
        columns["exact"] = json.dumps(exact)
    return columns


def _check_bounds(values: Mapping[str, Any]) -> None:
    if not all(isinstance(file, str) for file in values.get("patch_files", ())):
        raise ValueError("patch_files must be texts.")
    for name in ("step_tokens_in", "step_tokens_out"):
        if not -(2**31) <= values.get(name, 0) < 2**31:
            raise ValueError(f"{name} does not fit a 32-bit number.")
    cost = values.get("step_cost")
    if cost is not None and not is_bounded_decimal(cost):
        raise ValueError("step_cost is not a decimal number of sensible size.")
