"""Parse JSON strictly, and render frozen records as JSON, for every interface.

The encoder does not check for infinite numbers or other time zones, because results contain neither.
"""

from __future__ import annotations

import base64
import json
import math
import sys
from codecs import BOM_UTF8
from collections import Counter
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
    """Parse JSON in UTF-8; raises Invalid for anything else.

    Refuses NaN, infinities and numbers that overflow a double, because they could not be returned as JSON, and objects
    with a repeated key, because one of its values would be lost.
    """
    try:
        return _STRICT.decode(text if isinstance(text, str) else text.removeprefix(BOM_UTF8).decode())
    except UnicodeDecodeError as wrong:
        raise Invalid(f"This is not JSON in UTF-8: byte {wrong.start + 1} is none.", code="malformed_json") from None
    except (json.JSONDecodeError, _NotJson) as wrong:
        raise Invalid(f"This is not JSON in UTF-8: {str(wrong)[:200]}.", code="malformed_json") from None
    except ValueError:
        # Here only int() can raise this: Python limits the digits of an int, because parsing time is quadratic.
        most = sys.get_int_max_str_digits()
        raise Invalid(f"A whole number in this JSON has more than {most} digits.", code="malformed_json") from None
    except RecursionError:
        raise Invalid("The JSON is nested too deeply.", code="nested_too_deeply") from None


class _NotJson(ValueError):
    """Text that Python's decoder accepts, although it is not valid JSON."""


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(twice, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise _NotJson(f"an object has the key {twice[:40]!r} more than once")
    return found


def _not_a_number(name: str) -> float:
    raise _NotJson(f"{name} is not a number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise _NotJson(f"{digits[:40]} is too large a number")
    return number


_STRICT = json.JSONDecoder(parse_constant=_not_a_number, parse_float=_finite, object_pairs_hook=_unique_keys)


def as_bytes(result: Any) -> bytes:
    """Serialize a result as a JSON object: a list as `items`, bytes as `content`.

    A page of more than MOST_PAGE_BYTES is cut, and continued by its cursor.
    """
    written = _encode(_as_object(result))
    if isinstance(result, Page) and len(written) > MOST_PAGE_BYTES and len(result) > 1:
        return _encode(_as_object(_beginning(result)))
    return written


def _encode(answer: Any) -> bytes:
    try:
        return orjson.dumps(answer, _plain, orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_UTC_Z)
    except TypeError:
        # orjson refuses lone surrogates, which are escaped here, and integers of more than 64 bits.
        return _ASCII.encode(answer).encode()


def _beginning(result: Page[Any]) -> Page[Any]:
    """The first items of a page that fit into MOST_PAGE_BYTES; at least one."""
    room = MOST_PAGE_BYTES
    for place, each in enumerate(result):
        room -= len(_encode(each)) + 1
        if room < 0:
            return result.first(max(1, place))
    return result


def as_ascii_json(result: Any) -> str:
    """Serialize a result as `as_bytes` does, but in ASCII and uncut, for terminals."""
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
    """Convert a value that the encoder does not know by one level."""
    if hasattr(value, "__dataclass_fields__"):
        kind: Any = type(value)
        names = json_names(kind)
        # What is null is left out.
        fields = {name: each for name, each in vars(value).items() if each is not None}
        return {names.get(name, name): fields[name] for name in fields if names.get(name, name)} if names else fields
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        # Written as a string: many parsers would lose digits of a JSON number.
        return format(value, "f")
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")


@cache
def json_names(record: type) -> dict[str, str]:
    """Fields whose JSON name differs, with that name; "" for fields left out."""
    found = {}
    for name, hint in get_type_hints(record, include_extras=True).items():
        for each in getattr(hint, "__metadata__", ()):
            if isinstance(each, FieldInfo) and (each.exclude or each.serialization_alias):
                found[name] = "" if each.exclude else str(each.serialization_alias)
    return found


# Results are trees, so the check for circular references is off.
_ASCII = json.JSONEncoder(default=_plain, allow_nan=False, check_circular=False, separators=(",", ":"))
