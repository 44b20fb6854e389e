"""JSON as it comes in, on every face: what is not JSON is refused with a sentence, not guessed at."""

from __future__ import annotations

import json
import math
import sys
from codecs import BOM_UTF8
from typing import Any

from conversations.errors import Invalid


def read(text: str | bytes) -> Any:
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
