"""Rebuild the stored messages from the pages of an expansion, byte for byte."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from conversations.types import PartRecord, PartType
from retrieval.slices import JSON_COLUMNS, PartView


@dataclass(frozen=True)
class JoinedMessage:
    """A message that was rejoined from the pages of an expansion."""

    message_id: int
    seq: int
    content: str
    parts: tuple[PartRecord, ...]


def joined(items: Iterable[Any]) -> Iterator[JoinedMessage]:
    """Rejoin the messages among the items of all pages, in order.

    Raises ValueError if a slice is missing.
    """
    content, parts_json = "", ""
    for item in items:
        if not item.id.startswith("msg_"):
            continue
        if item.content_offset != len(content) or item.parts_offset != len(parts_json):
            raise ValueError(f"A slice of {item.id} is missing.")
        content, parts_json = content + item.content, parts_json + item.parts_json
        if item.complete:
            message_id = int(item.id.removeprefix("msg_"))
            found = item.parts or from_json(parts_json)
            parts = tuple(restored(part, message_id=message_id, content=content) for part in found)
            yield JoinedMessage(message_id, item.first_seq, content, parts)
            content, parts_json = "", ""


def restored(part: PartView, *, message_id: int, content: str) -> PartRecord:
    """Rebuild the stored part exactly."""
    texts = {name: content[begin:end] for name, (begin, end) in part.spans.items()}
    read = {name: json.loads(text) if name in JSON_COLUMNS else text for name, text in texts.items()}
    values: dict[str, Any] = {**read, **part.values}
    if values.get("step_cost") is not None:
        values["step_cost"] = Decimal(values["step_cost"])
    if values.get("patch_files") is not None:
        values["patch_files"] = tuple(values["patch_files"])
    return PartRecord(
        part_type=part.part_type,
        **values,
        part_id=f"part_{message_id}_{part.ordinal}",
        message_id=message_id,
        ordinal=part.ordinal,
    )


def from_json(text: str) -> tuple[PartView, ...]:
    """Parse the parts that `as_json` serialized."""
    found = []
    for line in text.splitlines():
        ordinal, part_type, values, spans = json.loads(line)
        places = {name: (begin, end) for name, (begin, end) in spans.items()}
        found.append(PartView(ordinal, PartType(part_type), values, places))
    return tuple(found)
