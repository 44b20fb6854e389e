"""Read the selected messages and summaries, and render them as models see them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from compaction.rendering import ERASED, render_summary
from conversations.fast.records import record
from conversations.formats.foreign_rows import is_bookkeeping
from conversations.policy import StorePolicy
from conversations.sql import load, rows, texts
from conversations.store.read import messages_of
from conversations.types import MessageRecord, PartRecord, PartType, Role
from retrieval.assembly.selection import Candidate
from retrieval.assembly.types import AssembledItem

_LEFT_OUT = "lcm:bytes_left_out"
# For each type of part, the field that may hold the whole text of a message.
_TEXT_OF = {PartType.TEXT: "text_content", PartType.TOOL: "tool_output"}
_SQL = load("retrieval/assembly.sql")


class ShownSummary(NamedTuple):
    summary_id: str
    content: str
    erased_by_id: int | None
    kind: str
    depth: int
    first_seq: int
    last_seq: int
    earliest_at: datetime
    latest_at: datetime


def read_summaries(summary_ids: Sequence[str]) -> dict[str, ShownSummary]:
    """Read these summaries; the keys of the result are their ids."""
    if not summary_ids:
        return {}
    return {row[0]: ShownSummary(*row) for row in rows(_SQL["shown_summaries"], [texts(summary_ids)])}


def read_items(selected: Sequence[Candidate]) -> tuple[AssembledItem, ...]:
    """Read the items of these candidates, in the given order."""
    most = StorePolicy.from_settings().max_metadata_bytes
    found = messages_of([each.message_id for each in selected if each.message_id is not None])
    messages = {message.message_id: message for message in found}
    summaries = read_summaries([each.summary_id for each in selected if each.summary_id is not None])
    return tuple(
        [
            _shown_summary(candidate, summaries[candidate.id])
            if candidate.message_id is None
            else _shown_message(candidate, messages[candidate.message_id], most)
            for candidate in selected
        ]
    )


def _shown_message(candidate: Candidate, message: MessageRecord, most: int) -> AssembledItem:
    is_erased = message.erased_by_id is not None
    parts = [_shown_part(part, most) for part in message.parts if not is_bookkeeping(part)]
    # An erased message stays in its position, with a placeholder as its text.
    text = ERASED if is_erased else message.content
    if candidate.passage is not None:
        text = in_part(message, candidate.passage.begin, candidate.passage.end)
        parts = [record(PartRecord, {**vars(part), _TEXT_OF[part.part_type]: text}) for part in parts]
    values = {
        **_place_of(candidate, message.seq, message.seq),
        "role": candidate.role,
        "text": text,
        "created_at": message.created_at,
        "author": message.author,
        "metadata": _bounded(message.metadata, most),
        "parts": tuple(parts),
        "erased": is_erased,
    }
    if candidate.passage is not None:
        begin, end, _ = candidate.passage
        values |= {"content_offset": begin, "content_end": end, "content_total": len(message.content)}
    return record(AssembledItem, values)


def can_be_cut(message: MessageRecord) -> bool:
    """Whether a message consists only of its content, so that it can be cut."""
    parts = [part for part in message.parts if not is_bookkeeping(part)]
    is_text = all(
        part.text_content == message.content
        if part.part_type is PartType.TEXT
        else part.part_type is PartType.TOOL
        and part.tool_output == message.content
        and part.tool_input is None
        and part.tool_error is None
        for part in parts
    )
    return message.erased_by_id is None and len(parts) <= 1 and is_text


def in_part(message: MessageRecord, begin: int, end: int) -> str:
    """Render a range of a message, below a line with the range and how to read all."""
    where = f"characters {begin + 1}-{end} of {len(message.content)}"
    return (
        f"[{message.id}, message {message.seq}, {where}; describe {message.id} opens it]\n{message.content[begin:end]}"
    )


def _shown_part(part: PartRecord, most: int) -> PartRecord:
    bounded = _bounded(part.metadata, most)
    return part if bounded is part.metadata else record(PartRecord, {**vars(part), "metadata": bounded})


def _bounded(metadata: Any, most: int) -> Any:
    """Return the metadata, or only its size if it is larger than `most` bytes.

    The token budget does not count metadata. Appends limit its size, but the limit may be newer than a message.
    """
    if not metadata:
        return metadata
    size = len(json.dumps(metadata, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    return metadata if size <= most else {_LEFT_OUT: size}


def _shown_summary(candidate: Candidate, summary: ShownSummary) -> AssembledItem:
    values = {
        **_place_of(candidate, summary.first_seq, summary.last_seq),
        "role": Role.USER,
        "text": render_summary(summary),
        "created_at": summary.latest_at,
        "metadata": {},
        "erased": summary.erased_by_id is not None,
    }
    return record(AssembledItem, values)


def _place_of(candidate: Candidate, first_seq: int, last_seq: int) -> Mapping[str, Any]:
    return {
        "id": candidate.id,
        "kind": candidate.kind,
        "first_seq": first_seq,
        "last_seq": last_seq,
        "tokens": candidate.tokens,
        "is_recalled": candidate.is_recalled,
    }
