"""Parse the items of a map run from a JSON array or from JSON Lines; no I/O.

The text of an item is exactly its text in the file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NoReturn

from conversations.content.lossless_values import is_deeper
from conversations.errors import Invalid, TooLarge

MOST_INPUT_BYTES = 64 * 1024 * 1024
MOST_ITEMS = 50_000
MOST_GIVEN_ITEMS = 1_000
MOST_ITEM_CHARACTERS = 200_000
MOST_ITEM_LEVELS = 100

_LINES = (".jsonl", ".ndjson")
_WHITE = " \t\n\r"


def items_of_file(content: bytes, *, file_name: str | None = None) -> list[str]:
    """Parse a file into items: the elements of a JSON array, or else the lines.

    Blank lines are skipped. A file named .jsonl or .ndjson is always read by lines. Raises TooLarge, and Invalid, whose
    message names the item or line that is not JSON.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Invalid("The input is not UTF-8; convert it.") from None
    has_lines = (file_name or "").lower().endswith(_LINES) or not text.lstrip(_WHITE).startswith("[")
    if not has_lines and (elements := _elements(text)) is not None:
        return checked_items(elements, noun="Item")
    return checked_items((line.strip(_WHITE) for line in text.split("\n")), noun="Line")


def items_of_values(values: Sequence[Any]) -> list[str]:
    """Serialize the items of a request, each as one line of JSON."""
    if len(values) > MOST_GIVEN_ITEMS:
        raise TooLarge(
            f"{len(values):,} items are too many; a request takes at most {MOST_GIVEN_ITEMS:,}. Store them as a file "
            "and give input_file_id."
        )
    try:
        texts = [line_of(value) for value in values]
    except (TypeError, ValueError, RecursionError):
        raise Invalid("items must be JSON values.") from None
    return checked_items(texts, noun="Item")


def line_of(value: Any) -> str:
    """Serialize a JSON value as one line of text that PostgreSQL can store."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Lone surrogates cannot be encoded in UTF-8, so they are written as escapes.
    is_text = text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)
    return text if is_text else json.dumps(value, allow_nan=False, separators=(",", ":"))


def value_of(text: str) -> Any:
    """Parse a JSON text; raises ValueError for invalid JSON, NaN and Infinity."""
    value = json.loads(text, parse_constant=_refuse)
    # This also refuses a number so large that it was parsed as Infinity.
    line_of(value)
    return value


def hash_of_items(items: Iterable[str]) -> bytes:
    """The SHA-256 of all items, with a line feed after each."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(item.encode() + b"\n")
    return digest.digest()


def checked_items(texts: Iterable[str], *, noun: str) -> list[str]:
    """Drop empty texts, and check the others; raises Invalid or TooLarge."""
    items: list[str] = []
    for number, text in enumerate(texts, start=1):
        if not text:
            continue
        if len(items) >= MOST_ITEMS:
            raise TooLarge(f"The input has more than {MOST_ITEMS:,} items; split it into several runs.")
        if len(text) > MOST_ITEM_CHARACTERS:
            raise TooLarge(f"{noun} {number:,} has more than {MOST_ITEM_CHARACTERS:,} characters; shorten it.")
        try:
            value = value_of(text)
        except (ValueError, RecursionError):
            raise Invalid(f"{noun} {number:,} of the input is not JSON; nothing was stored.") from None
        if is_deeper(value, MOST_ITEM_LEVELS):
            raise Invalid(f"{noun} {number:,} is more than {MOST_ITEM_LEVELS} levels deep.")
        items.append(text)
    if not items:
        raise Invalid("The input has no items.")
    return items


def _elements(text: str) -> list[str] | None:
    """The exact texts of the elements of a JSON array; None if it is not an array."""
    try:
        # One more than allowed suffices for the refusal; the file may have millions.
        return list(islice(_scan(text), MOST_ITEMS + 1))
    except (ValueError, RecursionError):
        return None


def _scan(text: str) -> Iterator[str]:
    decoder = json.JSONDecoder(parse_constant=_refuse)
    place = _next(text, _next(text, 0, "[") + 1)
    while text[place : place + 1] != "]":
        _, end = decoder.raw_decode(text, place)
        yield text[place:end]
        place = _next(text, end)
        if text[place : place + 1] == ",":
            place = _next(text, place + 1)
            if text[place : place + 1] == "]":
                raise ValueError("a comma too many")
        elif text[place : place + 1] != "]":
            raise ValueError("no comma")
    if text[place + 1 :].strip(_WHITE):
        raise ValueError("more behind the array")


def _next(text: str, place: int, expected: str = "") -> int:
    while place < len(text) and text[place] in _WHITE:
        place += 1
    if expected and text[place : place + 1] != expected:
        raise ValueError("not what is expected")
    return place


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
