"""Shorten the metadata of messages whose original line is in the journal. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from conversations.content.flattening import byte_size, flattened, sizes_beside_texts
from conversations.types import NewMessage

# The metadata key that names the journal line with the original.
KEY = "journal"
_OF_PART = re.compile(r"parts\[(\d+)\]\.(metadata|patch_files)")
# Bytes reserved for this key.
_ROOM = 1_500


@dataclass(frozen=True)
class Place:
    """A line of the journal."""

    subpath: str
    position: int


def abridged(message: NewMessage, place: Place, *, most: int) -> NewMessage:
    """Drop the largest metadata until the non-text fields fit into `most` bytes.

    The names of a patch's files become its text. A message that fits is returned as it is.
    """
    sizes = dict(sizes_beside_texts(message))
    if sum(sizes.values()) <= most:
        return message
    left = sum(sizes.values()) - (most - _ROOM)
    metadata, parts = message.metadata, list(message.parts)
    for name in sorted(sizes, key=lambda name: sizes[name], reverse=True):
        of_part = _OF_PART.fullmatch(name)
        if left <= 0 or not (of_part or name == "metadata"):
            continue
        part = parts[int(of_part[1])] if of_part else None
        if part and of_part and of_part[2] == "patch_files":
            parts[int(of_part[1])] = replace(part, patch_files=None, text_content=flattened([part]))
            left -= sizes[name]
            continue
        less = _reduced((part or message).metadata or {}, left)
        left -= sizes[name] - byte_size(less)
        if part is None:
            metadata = less
        elif of_part:
            parts[int(of_part[1])] = replace(part, metadata=less or None)
    return replace(message, metadata={**(metadata or {}), KEY: vars(place)}, parts=tuple(parts))


def place_of(metadata: Any) -> Place | None:
    """Return the journal line of an abridged message; None if it is not abridged."""
    found = metadata.get(KEY) if isinstance(metadata, Mapping) else None
    if not isinstance(found, Mapping) or found.keys() != {"subpath", "position"}:
        return None
    is_place = isinstance(found["subpath"], str) and type(found["position"]) is int
    return Place(found["subpath"], found["position"]) if is_place else None


def _reduced(value: Mapping[str, Any], excess: int) -> dict[str, Any]:
    """Drop an object's largest values until it is smaller by `excess` bytes."""
    sizes = {key: byte_size(each) for key, each in value.items()}
    kept = dict(value)
    for key in sorted(sizes, key=lambda key: sizes[key], reverse=True):
        if excess <= 0:
            break
        inner = kept.pop(key)
        freed = sizes[key]
        # A nested object that is larger than the excess is reduced, not dropped.
        if isinstance(inner, Mapping) and freed > excess and (less := _reduced(inner, excess)):
            kept[key] = less
            freed -= byte_size(less)
        excess -= freed
    return kept
