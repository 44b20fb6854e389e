"""JSON on every face: parsed strictly, rendered from frozen records.

Results hold only finite numbers and moments of UTC, so the encoder does not look for others.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from codecs import BOM_UTF8
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache
from typing import Any, get_type_hints

import orjson
from pydantic.fields import FieldInfo

from conversations.errors import Invalid
from conversations.store.pages import MOST_PAGE_BYTES
from lcmsite.catalogue.paging import Page


def parse(text: str | bytes) -> Any:
    """The value that the text holds; Invalid for text that is not UTF-8 or not JSON.

    NaN, infinities and numbers that a double takes for one are none: they could not be given back as JSON. Nor is an
    object that names a key twice: one of its values would be lost.
    """
    try:
        return _STRICT.decode(text if isinstance(text, str) else text.removeprefix(BOM_UTF8).decode())
    except UnicodeDecodeError as wrong:
        raise Invalid(f"This is not JSON in UTF-8: byte {wrong.start + 1} is none.", code="malformed_json") from None
    except (json.JSONDecodeError, _NotJson) as wrong:
        raise Invalid(f"This is not JSON in UTF-8: {str(wrong)[:200]}.", code="malformed_json") from None
    except ValueError:
        # Python's own int() is the only one left to refuse: it bounds the digits, as reading very many takes very long.
        most = sys.get_int_max_str_digits()
        raise Invalid(f"A whole number in this JSON has more than {most} digits.", code="malformed_json") from None
    except RecursionError:
        raise Invalid("The JSON is nested too deeply.", code="nested_too_deeply") from None


class _NotJson(ValueError):
    """What Python's reader would take and JSON has not."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _NotJson(f"an object has the key {twice[:40]!r} more than once")
    return found


def _not_a_number(name: str) -> float:
    raise _NotJson(f"{name} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _NotJson(f"{digits[:40]} is too large a number")
    return number


_STRICT = json.JSONDecoder(parse_constant=_not_a_number, parse_float=_finite, object_pairs_hook=_once)


def as_bytes(result: Any) -> bytes:
    """The result as a JSON object; a list is its `items`, bytes their `content`."""
    written = _written(_as_object(result))
    if isinstance(result, Page) and len(written) > MOST_PAGE_BYTES and len(result) > 1:
        return _written(_as_object(_beginning(result)))
    return written


def _written(answer: Any) -> bytes:
    try:
        return orjson.dumps(answer, _plain, orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_UTC_Z)
    except TypeError:
        # A lone surrogate, which comes out as the escape it came in as, or a number of more than 64 bits.
        return _ASCII.encode(answer).encode()


def _beginning(result: Page[Any]) -> Page[Any]:
    """As many items as a page of MOST_PAGE_BYTES holds, one at least."""
    room = MOST_PAGE_BYTES
    for place, each in enumerate(result):
        room -= len(_written(each)) + 1
        if room < 0:
            return result.first(max(1, place))
    return result


def as_json(result: Any) -> str:
    """The same in ASCII, for terminals that show nothing else."""
    return _ASCII.encode(_as_object(result))


def _as_object(result: Any) -> Any:
    if isinstance(result, Page) and result.next_cursor is not None:
        return {"items": list(result), "next_cursor": result.next_cursor}
    if isinstance(result, list | tuple):
        return {"items": result}
    if isinstance(result, bytes):
        return {"content": base64.b64encode(result).decode("ascii")}
    return result


def _plain(value: Any) -> Any:
    """One step towards JSON, for a value that the encoder does not know."""
    if hasattr(value, "__dataclass_fields__"):
        kind: Any = type(value)
        names = _names(kind)
        # What is null is left out.
        fields = {name: each for name, each in vars(value).items() if each is not None}
        return {names.get(name, name): fields[name] for name in fields if names.get(name, name)} if names else fields
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


@cache
def _names(record: type) -> dict[str, str]:
    """Fields with another name in JSON; "" for those left out."""
    found = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        for each in getattr(hint, "__metadata__", ()):
            if isinstance(each, FieldInfo) and (each.exclude or each.serialization_alias):
                found[name] = "" if each.exclude else str(each.serialization_alias)
    return found


# Results are trees, so nobody looks for circles: that took a sixteenth of the time of a large answer.
_ASCII = json.JSONEncoder(default=_plain, allow_nan=False, check_circular=False, separators=(",", ":"))
