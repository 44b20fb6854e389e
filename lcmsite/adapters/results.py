"""Frozen records as JSON: the one way that results leave LCM, on every face.

The standard library's encoder does the work and asks only about what it does not know: no serializer in between. ASCII
alone, so that a lone surrogate comes out as the escape it came in as; NaN, which is not JSON, is refused.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from conversations.frozen import every_field


def as_json(result: Any, *, indent: int | None = None) -> str:
    """The result as JSON; an answer is always an object: a list is its `items`, bytes are its `content`."""
    if isinstance(result, list | tuple):
        result = {"items": result}
    elif isinstance(result, bytes):
        result = {"content": base64.b64encode(result).decode("ascii")}
    if indent is None:
        return _COMPACT.encode(result)
    return json.dumps(result, default=_plain, allow_nan=False, indent=indent)


def _plain(value: Any) -> Any:
    """One step towards JSON, for a value that the encoder does not know."""
    if hasattr(value, "__dataclass_fields__"):
        return every_field(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        # A text, for a JSON number would lose digits in many a reader.
        return format(value, "f")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")


# Results are trees, so nobody looks for circles: that took a sixteenth of the time of a large answer.
_COMPACT = json.JSONEncoder(default=_plain, allow_nan=False, check_circular=False, separators=(",", ":"))
