"""Bounds what is neither counted in tokens nor kept as a file: metadata, and fields of parts that no model is shown."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import orjson

from conversations.errors import TooLarge
from conversations.types import NewMessage, NewPart, PartType

M = TypeVar("M", bound=Mapping[str, Any])

# What `flattening` counts of a part of each type. A FILE's bytes are bounded by the request that brings them.
_COUNTED: Mapping[PartType, frozenset[str]] = {
    PartType.TEXT: frozenset({"text_content"}),
    PartType.RETRY: frozenset({"text_content"}),
    PartType.REASONING: frozenset({"text_content"}),
    PartType.TOOL: frozenset({"tool_name", "tool_input", "tool_output", "tool_error"}),
    PartType.PATCH: frozenset({"text_content"}),
    PartType.FILE: frozenset({"file_name", "file_url"}),
    PartType.SUBTASK: frozenset({"subtask_prompt"}),
}
_NONE: frozenset[str] = frozenset()


def require_bounded(message: NewMessage, *, position: int, most: int) -> None:
    """TooLarge, naming the largest field, if a message carries more bytes beside its texts than it may."""
    sizes = dict(_beside_texts(message))
    if sum(sizes.values()) > most:
        field = max(sizes, key=lambda name: sizes[name])
        raise _too_large(f"messages[{position - 1}].{field}", sum(sizes.values()), most)


def require_metadata(metadata: M, *, most: int) -> M:
    """The metadata of a conversation or a boundary; TooLarge if they have too many bytes."""
    if metadata and (size := _size(metadata)) > most:
        raise _too_large("metadata", size, most)
    return metadata


def _too_large(field: str, size: int, most: int) -> TooLarge:
    return TooLarge(
        f"{field}: {size:,} bytes are too many; {most:,} are taken. "
        "What a model should see belongs into the content, and what is large into a file.",
        code="metadata_too_large",
        field=field,
    )


def _beside_texts(message: NewMessage) -> Iterator[tuple[str, int]]:
    if message.metadata:
        yield "metadata", _size(message.metadata)
    for place, part in enumerate(message.parts):
        yield from _beside_texts_of(part, f"parts[{place}]")


def _beside_texts_of(part: NewPart, where: str) -> Iterator[tuple[str, int]]:
    counted = _COUNTED.get(part.part_type, _NONE)
    for name, value in vars(part).items():
        # Numbers and flags are short.
        if value is not None and name not in counted and name != "part_type" and type(value) not in (bool, int):
            yield f"{where}.{name}", _size(value)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    try:
        return len(orjson.dumps(value, default=str))
    except TypeError:
        # A lone surrogate, or a number of more than 64 bits.
        with suppress(ValueError, RecursionError):
            return len(json.dumps(value, default=str))
        # No JSON can say it; it is refused for that.
        return 0
