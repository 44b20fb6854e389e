"""Read the selected messages with their parts, and summaries as models see them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from compaction.rendering import ERASED, render_summary
from conversations.cold_storage.cold_texts import BLOCK, ColdTexts, cold_texts
from conversations.fast.records import record
from conversations.policy import StorePolicy
from conversations.sql import array, load, rows
from conversations.store.read import NOT_FROM_COMPACTION, PART, PART_WIDTH, metadata_of, parts_in
from conversations.types import PartRecord, Role
from retrieval.assembly.selection import Candidate
from retrieval.assembly.types import AssembledItem

# Metadata cost no tokens, and are bounded where they are appended. Of messages from before that bound, a context shows
# how many bytes were left out: a thousand of them would fill the memory.
_LEFT_OUT = "lcm:bytes_left_out"
_READ_APART = "lcm:read_apart"
_EXACT = 11
_EXACT_OF_MESSAGE = "SELECT exact FROM messages WHERE message_id = %s"
_EXACT_OF_PART = "SELECT exact FROM message_parts WHERE part_id = %s"
_SQL = load("retrieval/assembly.sql")
_METADATA, _EXACT_VALUES = _SQL["bounded_metadata"], _SQL["bounded_exact"]
_NO_BLOCK = ", NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint, NULL::bigint, NULL::bigint"


def _items(no_block: str) -> str:
    part = PART.replace("metadata::text", _METADATA).replace(", exact,", f", {_EXACT_VALUES} AS exact,")
    return _SQL["items"].format(
        part=part, metadata=_METADATA, exact=_EXACT_VALUES, is_content=NOT_FROM_COMPACTION, no_block=no_block
    )


_ALL_WARM = _items("")
# Where some messages are cold, with the blocks that their texts are in.
_BLOCKS = _SQL["blocks"].format(no_part=", ".join(["NULL"] * PART_WIDTH), block=BLOCK)
_SOME_COLD = f"{_items(_NO_BLOCK)} UNION ALL {_BLOCKS}"
# It does not look for white space, which the database writes none of around a value.
_decode = json.JSONDecoder().raw_decode
_time = datetime.fromisoformat


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


def shown_summary(summary_id: str, content: str, figures: str) -> ShownSummary:
    """The summary of these columns, the last of them its figures."""
    (*figures_shown, earliest, latest), _ = _decode(figures)
    return ShownSummary._make((summary_id, content, *figures_shown, _time(earliest), _time(latest)))


def read_summaries(summary_ids: Sequence[str]) -> dict[str, ShownSummary]:
    """These summaries by id."""
    return {row[0]: shown_summary(*row) for row in rows(_SQL["shown_summaries"], [ids(summary_ids)])}


def ids(summary_ids: Sequence[str]) -> str:
    """The ids as the text of an array."""
    return "{" + ",".join(summary_ids) + "}"


def read_items(selected: Sequence[Candidate], *, some_are_cold: bool) -> tuple[AssembledItem, ...]:
    """The items of these candidates, in their order, by one query."""
    most = StorePolicy.from_settings().max_metadata_bytes
    found = rows(
        _SOME_COLD if some_are_cold else _ALL_WARM,
        {
            "messages": array(each.message_id for each in selected if each.message_id is not None),
            "most_metadata": most,
            "summaries": ids([each.summary_id for each in selected if each.summary_id is not None]),
        },
        binary=True,
    )
    found = [_with_exact(row, most) if row[_EXACT] and _READ_APART in row[_EXACT] else row for row in found]
    cold: ColdTexts | None = None
    if some_are_cold:
        cold = ColdTexts()
        cold.keep(row[PART_WIDTH:] for row in found if row[PART_WIDTH] is not None)
        found = [row[:PART_WIDTH] for row in found]
    messages = {row[0]: row for row in found if row[3] is None and row[0] is not None}
    summaries = {row[2]: row for row in found if row[0] is None}
    cold = cold_texts([int(row[8]) for row in messages.values() if row[8] is not None], cold)
    # Sorted here: the server would carry all texts around for it.
    parts = parts_in(sorted([row for row in found if row[3] is not None]), cold=cold)
    return tuple(
        [
            _shown_summary(candidate, summaries[candidate.summary_id])
            if candidate.message_id is None
            else _shown_message(candidate, messages[candidate.message_id], parts, cold)
            for candidate in selected
        ]
    )


def _with_exact(row: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """The row with its exact values, or the size of metadata that are too large."""
    message_id, _, part_id, kind, *_ = row
    [(exact,)] = rows(_EXACT_OF_MESSAGE, [message_id]) if kind is None else rows(_EXACT_OF_PART, [part_id])
    size = len(json.dumps(exact.get("metadata")))
    if size > most:
        exact["metadata"] = {_LEFT_OUT: size}
    return (*row[:_EXACT], exact, *row[_EXACT + 1 :])


def _shown_message(
    candidate: Candidate, row: tuple[Any, ...], parts: Mapping[int, Sequence[PartRecord]], cold: ColdTexts | None
) -> AssembledItem:
    message_id, _, _, _, content, author, created_at, erased_by_id, block_id, _, metadata, exact, _ = row
    if block_id is not None and cold is not None:
        texts = cold.message(int(block_id), message_id)
        content, metadata, exact = texts.content, texts.metadata, texts.exactly
    # An erased text leaves its place, so that what is around it still reads as before.
    text, metadata = content if erased_by_id is None else ERASED, metadata_of(metadata)
    if exact:
        text, metadata = exact.get("content", content), exact.get("metadata", metadata)
    values = {
        **_place_of(candidate, candidate.ordinal, candidate.ordinal),
        "role": candidate.role,
        "text": text,
        "created_at": _time(created_at),
        "author": author,
        "metadata": metadata,
        "parts": tuple(parts.get(message_id, ())),
        "erased": erased_by_id is not None,
    }
    return record(AssembledItem, values)


def _shown_summary(candidate: Candidate, row: tuple[Any, ...]) -> AssembledItem:
    summary = shown_summary(row[2], row[4], row[12])
    values = {
        **_place_of(candidate, summary.first_seq, summary.last_seq),
        "role": Role.USER,
        "text": render_summary(summary),
        "created_at": summary.latest_at,
        "metadata": {},
        "erased": summary.erased_by_id is not None,
    }
    return record(AssembledItem, values)


def _place_of(candidate: Candidate, first_seq: int, last_seq: int) -> dict[str, Any]:
    return {
        "id": candidate.id,
        "kind": candidate.kind,
        "first_seq": first_seq,
        "last_seq": last_seq,
        "tokens": candidate.tokens,
        "is_recalled": candidate.is_recalled,
    }
