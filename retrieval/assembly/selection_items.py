"""Reads what was selected and nothing else: messages with their parts as they came, summaries as a model sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from compaction.rendering import ERASED, render_summary
from conversations.cold_storage.cold_texts import BLOCK, ColdTexts, cold_texts
from conversations.fast.records import record
from conversations.policy import StorePolicy
from conversations.sql import array, rows
from conversations.store.read import PART, PART_WIDTH, SAID, metadata_of, parts_in
from conversations.types import ContextItemType, PartRecord, Role
from retrieval.assembly.candidates import Candidate
from retrieval.assembly.shown_summaries import FIGURES, ids, shown_summary
from retrieval.assembly.types import AssembledItem

# Past the ORM, and with times as text: a context may hold a thousand messages or some hundred summaries, and making
# instances of them, or times the way Django has its connections do it, would take longer than all the rest.
#
# Messages, their parts and summaries are all texts with something to say of them, and so rows of one statement in the
# columns of a part: a part has a kind, a summary has no message.
#
# Metadata cost no tokens, and are bounded where they are appended. Of messages that came before that bound, a context
# shows how many bytes were left out instead: a thousand of them would fill the memory.
_TOO_LARGE = "pg_column_size({0}) > 1024 AND octet_length({0}::text) > %(most_metadata)s"
_LEFT_OUT = "lcm:bytes_left_out"
METADATA = f"""CASE WHEN {_TOO_LARGE.format("metadata")}
        THEN json_build_object('{_LEFT_OUT}', octet_length(metadata::text))::text ELSE metadata::text END"""
# `exact` may hold metadata beside other things, and characters at which PostgreSQL's own functions on json fail: what
# is too large of it is read by itself, row by row.
_READ_APART = "lcm:read_apart"
EXACT = f"""CASE WHEN {_TOO_LARGE.format("exact")} THEN json_build_object('{_READ_APART}', true) ELSE exact END"""
_EXACT = 11
_EXACT_OF_MESSAGE = "SELECT exact FROM messages WHERE message_id = %s"
_EXACT_OF_PART = "SELECT exact FROM message_parts WHERE part_id = %s"
_ITEMS = f"""
    SELECT message_id, NULL::integer AS ordinal, NULL AS part_id, NULL, content, author, created_at::text,
           erased_by_id::text, cold_block_id::text, NULL, {METADATA}, {EXACT}, NULL{{of_no_block}}
    FROM messages WHERE message_id = ANY(%(messages)s)
    UNION ALL
    SELECT {PART.replace("metadata::text", METADATA).replace(", exact,", f", {EXACT} AS exact,")}{{of_no_block}}
    FROM message_parts WHERE message_id = ANY(%(messages)s) AND {SAID}
    UNION ALL
    SELECT NULL, NULL, summary_id, NULL, content, NULL, NULL, NULL, NULL, NULL, NULL, NULL, {FIGURES}{{of_no_block}}
    FROM summaries WHERE summary_id = ANY(%(summaries)s::text[]){{blocks}}
"""
_ALL_WARM = _ITEMS.format(of_no_block="", blocks="")
# Where some messages are cold, with the blocks that their texts are in, which come behind all columns.
_SOME_COLD = _ITEMS.format(
    of_no_block=", NULL::bigint, NULL::bytea, NULL::bytea, NULL::bigint, NULL::bigint, NULL::bigint",
    blocks=f"""
    UNION ALL
    SELECT {", ".join(["NULL"] * PART_WIDTH)}, {BLOCK}
    FROM cold_blocks
    WHERE cold_block_id = ANY(ARRAY(
        SELECT m.cold_block_id FROM messages m WHERE m.message_id = ANY(%(messages)s) AND m.cold_block_id IS NOT NULL
    ))""",
)
# Looked up once, and not for each item.
_MESSAGE, _SUMMARY = ContextItemType.MESSAGE, ContextItemType.SUMMARY
_time = datetime.fromisoformat


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
    """The row of a message or a part with its exact values; of metadata that are too large, with their size."""
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
    seq = candidate.ordinal
    values = {
        "id": f"msg_{message_id}",
        "kind": _MESSAGE,
        "role": candidate.role,
        "first_seq": seq,
        "last_seq": seq,
        "tokens": candidate.tokens,
        # A text that was erased left its place: what came before and after it still reads as it was said.
        "text": content if erased_by_id is None else ERASED,
        "created_at": _time(created_at),
        "author": author,
        "metadata": metadata_of(metadata),
        "parts": tuple(parts.get(message_id, ())),
        "is_recalled": candidate.is_recalled,
        "erased": erased_by_id is not None,
    }
    if exact:
        values["text"] = exact.get("content", content)
        values["metadata"] = exact.get("metadata", values["metadata"])
    return record(AssembledItem, values)


def _shown_summary(candidate: Candidate, row: tuple[Any, ...]) -> AssembledItem:
    summary = shown_summary(row[2], row[4], row[12])
    values = {
        "id": summary.summary_id,
        "kind": _SUMMARY,
        "role": Role.USER,
        "first_seq": summary.first_seq,
        "last_seq": summary.last_seq,
        "tokens": candidate.tokens,
        "text": render_summary(summary),
        "created_at": summary.latest_at,
        "author": None,
        "metadata": {},
        "parts": (),
        "is_recalled": candidate.is_recalled,
        "erased": summary.erased_by_id is not None,
    }
    return record(AssembledItem, values)
