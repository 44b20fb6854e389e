"""Extract a message's text, and limit the size of its other fields. Pure.

The text is what grep searches and a plain-text model reads; long texts become files. The other fields are the metadata,
and the fields of parts that no model sees. This module limits their size in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import orjson

from conversations.content.tokens import IMAGE_TOKENS, SHORTEST_DATA
from conversations.errors import TooLarge
from conversations.types import NewMessage, NewPart, PartType

# Maximum of the characters of the content times the number of parts: beyond it, a comparison would take too long.
MOST_COMPARED = 1_000_000_000
_as_json = json.JSONEncoder(ensure_ascii=False).encode

M = TypeVar("M", bound=Mapping[str, Any])

# The text fields of each type of part, which are not limited here. A FILE's bytes are limited by the request's size.
_COUNTED: Mapping[PartType, Collection[str]] = {
    PartType.TEXT: ("text_content",),
    PartType.RETRY: ("text_content",),
    PartType.REASONING: ("text_content",),
    PartType.TOOL: ("tool_name", "tool_input", "tool_output", "tool_error"),
    PartType.PATCH: ("text_content",),
    PartType.FILE: ("text_content", "file_name", "file_url"),
    PartType.SUBTASK: ("subtask_prompt",),
}


def flattened(parts: Iterable[NewPart]) -> str:
    """Join the texts of the parts, without reasoning, images and bookkeeping."""
    return "\n".join([text for part in parts for _, text in _texts_of(part)])


def content_of(message: NewMessage) -> str:
    """Return the content with which a message is stored, unless it is too long."""
    return flattened(message.parts) if message.content is None else message.content


def searchable(content: str, parts: Iterable[NewPart]) -> str:
    """Join the content with the texts that only the parts have.

    Joins all texts if the comparison would take too long: a duplicate costs space, a missing text is never found.
    """
    parts = tuple(parts)
    known = content if len(content) * len(parts) <= MOST_COMPARED else ""
    texts = [text for part in parts for value, text in _texts_of(part) if value not in known and text not in known]
    return "\n".join([content, *texts] if content else texts)


def texts_for_readers(content: str, parts: Iterable[NewPart]) -> list[str]:
    """Return the texts of a message as people and models read them, in order.

    These are the texts of the parts, with reasoning and a host's summary marked as such. Content that the parts do not
    repeat comes first; if the comparison would take too long, the parts may repeat it. A message without any text is
    shown by the types of its parts.
    """
    parts = [part for part in parts if not part.is_ignored or part.part_type is not PartType.COMPACTION]
    texts = [pair for part in parts for pair in (_texts_of(part) or _marked(part))]
    if _has_all(texts, content):
        return [text for _, text in texts] or [f"[{part.part_type}]" for part in parts]
    known = content if len(content) * len(texts) <= MOST_COMPARED else ""
    return [content, *(text for value, text in texts if value not in known and text not in known)]


def _marked(part: NewPart) -> list[tuple[str, str]]:
    """Return a text that is not searched, with the type of its part."""
    return [(part.text_content, f"[{part.part_type}] {part.text_content}")] if part.text_content else []


def _has_all(texts: Iterable[tuple[str, str]], content: str) -> bool:
    """Whether the content consists of these texts, or some of them, in this order."""
    # Positions in the content, because a copy of its rest for each of many texts would take too long.
    place, end = len(content) - len(content.lstrip()), len(content.rstrip())
    for value, text in texts:
        begin = next((each for each in (text.strip(), value.strip()) if content.startswith(each, place)), "")
        place += len(begin)
        while content[place : place + 1].isspace():
            place += 1
    return place >= end


def reasoning_in(parts: Iterable[NewPart]) -> str:
    """The reasoning in parts, which costs tokens and is not searched."""
    return "\n".join(part.text_content for part in parts if part.part_type is PartType.REASONING and part.text_content)


def attachment_tokens(parts: Iterable[NewPart]) -> int:
    """Count the tokens of images and inline files, which have no text."""
    return IMAGE_TOKENS * sum(part.part_type is PartType.FILE and _is_sent(part) for part in parts)


def _is_sent(part: NewPart) -> bool:
    """Whether a model gets the file itself: an image, or inline data."""
    url = part.file_url or ""
    if url.startswith("data:") and len(url) >= SHORTEST_DATA:
        return True
    is_image = (part.file_mime or "").startswith("image/") or url.startswith("data:image/")
    # An image that the vendor stores has no URL, but the vendor's id of it in the metadata.
    return is_image and (url.startswith(("data:", "https://", "http://")) if url else bool(part.metadata))


def _texts_of(part: NewPart) -> list[tuple[str, str]]:
    """Return each text of a part, with its form in a flattened message."""
    texts: list[tuple[str | None, str | None]]
    match part.part_type:
        case PartType.TEXT | PartType.RETRY:
            texts = [(part.text_content, part.text_content)]
        case PartType.TOOL:
            texts = [_call(part), (part.tool_output, part.tool_output), (part.tool_error, part.tool_error)]
        case PartType.PATCH:
            files = " ".join(part.patch_files or ())
            texts = [(part.text_content, part.text_content)] if part.text_content else [(files, f"[patch {files}]")]
        case PartType.FILE:
            named = (part.file_name, part.file_name and f"[file {part.file_name}]")
            texts = [named, (part.text_content, part.text_content)]
        case PartType.SUBTASK:
            text = part.subtask_prompt or part.subtask_desc
            texts = [(text, text)]
        case _:
            texts = []
    return [(value, text) for value, text in texts if value and text]


def _call(part: NewPart) -> tuple[str | None, str | None]:
    """A tool call as `[tool_call NAME] {json}`; none for a part with only a result."""
    if part.tool_input is None and (not part.tool_name or part.tool_output is not None or part.tool_error is not None):
        return None, None
    arguments = part.tool_input if isinstance(part.tool_input, str) else _as_json(part.tool_input)
    text = f"[tool_call {part.tool_name}] {arguments}"
    # A call without arguments is compared by its whole text.
    return (arguments if part.tool_input else text), text


def require_bounded(message: NewMessage, *, position: int, most: int) -> None:
    """Raise TooLarge if the non-text fields exceed `most` bytes; name the largest."""
    sizes = dict(sizes_beside_texts(message))
    if sum(sizes.values()) > most:
        field = max(sizes, key=lambda name: sizes[name])
        raise _too_large(f"messages[{position - 1}].{field}", sum(sizes.values()), most)


def require_metadata(metadata: M, *, most: int) -> M:
    """Return the metadata; TooLarge if they have too many bytes."""
    if metadata and (size := byte_size(metadata)) > most:
        raise _too_large("metadata", size, most)
    return metadata


def _too_large(field: str, size: int, most: int) -> TooLarge:
    return TooLarge(
        f"{field}: {size:,} bytes are too many; the maximum is {most:,}. "
        "Put text for a model into the content, and large data into a file.",
        code="metadata_too_large",
        field=field,
    )


def sizes_beside_texts(message: NewMessage) -> Iterator[tuple[str, int]]:
    """Yield the non-text fields of a message with their sizes in bytes."""
    if message.metadata:
        yield "metadata", byte_size(message.metadata)
    for place, part in enumerate(message.parts):
        counted = ("part_type", *_COUNTED.get(part.part_type, ()))
        for name, value in vars(part).items():
            # Numbers and flags are short.
            if value is not None and name not in counted and type(value) not in (bool, int):
                yield f"parts[{place}].{name}", byte_size(value)


def byte_size(value: Any) -> int:
    """Return the size in bytes of a text, or of any other value as JSON."""
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-8", "surrogatepass"))
    try:
        return len(orjson.dumps(value, default=str))
    except TypeError:
        # A lone surrogate, or a number of more than 64 bits.
        with suppress(ValueError, RecursionError):
            return len(json.dumps(value, default=str))
        # The value is not serializable: another check refuses it.
        return 0
