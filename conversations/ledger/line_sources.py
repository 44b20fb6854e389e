"""Read the lines of a conversation from its rows, in portions of bounded size."""

from __future__ import annotations

import base64
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from django.db.models.functions import Collate

from conversations.cold_storage.cold_texts import ColdTexts, until_settled
from conversations.content import hashing
from conversations.content.large_texts.file_references import FileEntry
from conversations.errors import NotFound, Unavailable
from conversations.files.large_files import LargeFileService
from conversations.ledger.line_shapes import actor_of, as_line, kind_of
from conversations.ledger.lines import as_text, batches
from conversations.ledger.types import Line
from conversations.models import HeadMove, JournalEntry, LargeFile, Summary
from conversations.sql import array, load, rows
from conversations.store.read import files_of, messages_of, parts_of
from conversations.types import PART_COLUMNS, MessageRecord, PartRecord

# Rows with hashes are small and read in large portions; texts are read in portions bounded by their tokens.
PORTION = 1_000
MOST_MESSAGES = 50
MOST_TOKENS = 100_000
# A multiple of three bytes, so that the base64 of the chunks can be concatenated.
CHUNK_BYTES = 384 * 1024

SQL = load("conversations/ledger.sql")
_PART_HASHES = "SELECT message_id, ordinal, encode(part_hash, 'hex') FROM message_parts WHERE message_id = ANY(%s)"


def message_lines(
    conversation_id: int, *, after_seq: int = 0, cold: Callable[[], ColdTexts] = ColdTexts
) -> Iterator[Line]:
    """Yield messages after `after_seq` with their original parts."""
    while found := rows(SQL["hashes_of_messages"], [conversation_id, after_seq, PORTION]):
        for group in batches(found, itemgetter(2), most=MOST_MESSAGES, largest=MOST_TOKENS):
            ids = [message_id for _, message_id, *_ in group]
            hashes, files = _part_hashes(ids), files_of(ids)
            for row, message in zip(group, messages_of(ids, cold=cold()), strict=True):
                yield _message(message, row[3:], hashes[message.message_id], files.get(message.message_id, []))
        after_seq = found[-1][0]


def _message(
    message: MessageRecord, row: Sequence[Any], part_hashes: dict[int, str], files: Sequence[FileEntry]
) -> Line:
    recorded_at, chained, entry_hash, metadata_hash, record_hash = row
    is_erased, link = message.erased_by_id is not None, bytes.fromhex(message.chain_hash)
    parts = [_part(each, part_hashes) for each in message.parts if each.ordinal < chained]
    return as_line(
        "message",
        message,
        event_id=hashing.event_id(recorded_at=recorded_at, chain_hash=link),
        kind=kind_of(message.role, parts),
        actor=actor_of(message.role, message.author),
        recorded_at=as_text(recorded_at),
        content=None if is_erased else message.content,
        metadata=None if is_erased else message.metadata,
        parts=parts,
        erased=is_erased,
        chained_parts=chained,
        files=files,
        metadata_hash=metadata_hash,
        entry_hash=entry_hash,
        record_hash=record_hash,
    )


def _part(part: PartRecord, hashes: dict[int, str]) -> Line:
    values = {name: value for name in PART_COLUMNS if (value := getattr(part, name)) is not None}
    if "step_cost" in values:
        values["step_cost"] = format(values["step_cost"], "f")
    return {"ordinal": part.ordinal, **values, "part_hash": hashes.get(part.ordinal, "")}


def _part_hashes(message_ids: Sequence[int]) -> dict[int, dict[int, str]]:
    found: dict[int, dict[int, str]] = defaultdict(dict)
    for message_id, ordinal, part_hash in rows(_PART_HASHES, [array(message_ids)]):
        found[message_id][ordinal] = part_hash
    return found


def part_lines(conversation_id: int, *, cold: Callable[[], ColdTexts] = ColdTexts) -> Iterator[Line]:
    """Yield the parts that were added to messages later, such as compaction parts."""
    after_seq = 0
    while found := rows(SQL["messages_with_later_parts"], [conversation_id, after_seq, MOST_MESSAGES]):
        ids = [message_id for _, message_id, *_ in found]
        parts, hashes = until_settled(partial(parts_of, ids, cold=cold())), _part_hashes(ids)
        for seq, message_id, chained in found:
            for part in parts[message_id]:
                if part.ordinal >= chained:
                    yield {"type": "part", "seq": seq, **_part(part, hashes[message_id])}
        after_seq = found[-1][0]


def head_move_lines(conversation_id: int) -> Iterator[Line]:
    for move in HeadMove.objects.filter(conversation_id=conversation_id).order_by("number").iterator():
        yield as_line("head_move", move)


def summary_lines(conversation_id: int) -> Iterator[Line]:
    """Yield the summaries, each after the summaries that it was made from."""
    summaries = Summary.objects.filter(conversation_id=conversation_id)
    in_order = summaries.order_by("depth", "first_seq", "created_at", "summary_id").readable()
    records = (summary.as_record() for summary in in_order.iterator(chunk_size=MOST_MESSAGES))
    for group in batches(records, lambda summary: summary.token_count, most=MOST_MESSAGES, largest=MOST_TOKENS):
        ids = [summary.summary_id for summary in group]
        seqs, sources = dict(rows(SQL["source_seqs"], [ids])), dict(rows(SQL["source_ids"], [ids]))
        for summary in group:
            is_erased = summary.erased_by_id is not None
            yield as_line(
                "summary",
                summary,
                content=None if is_erased else summary.content,
                source_seqs=seqs.get(summary.summary_id, []),
                source_ids=sources.get(summary.summary_id, []),
                erased=is_erased,
            )


def journal_lines(conversation_id: int) -> Iterator[Line]:
    """Yield the journal: the raw entries of the agent program (host)."""
    entries = JournalEntry.objects.filter(conversation_id=conversation_id)
    in_order = entries.order_by(Collate("subpath", "C"), "position")
    for entry in in_order.iterator(chunk_size=MOST_MESSAGES):
        values = None if entry.entry is None else json.loads(entry.entry)
        yield as_line("journal", entry, entry=values, erased=entry.erased_by_id is not None)


def file_lines(conversation_id: int, storage: LargeFileService | None) -> Iterator[Line]:
    """Yield the files, each followed by its bytes if there is a storage."""
    files = LargeFile.objects.filter(conversation_id=conversation_id).order_by("created_at", "file_id")
    for file in files.iterator(chunk_size=PORTION):
        if storage is None or file.erased_by_id is not None:
            yield as_line("file", file, bytes="left_out" if file.erased_by_id is None else "erased")
            continue
        chunks = _chunks(file.file_id, storage)
        first = list(islice(chunks, 1))
        yield as_line("file", file, bytes="inline" if first else "missing")
        yield from chain(first, chunks)


def _chunks(file_id: str, storage: LargeFileService) -> Iterator[Line]:
    """Yield the file's bytes in at least one line, or none if they are missing."""
    offset = 0
    while True:
        try:
            chunk = storage.read(file_id=file_id, offset=offset, length=CHUNK_BYTES)
        except (NotFound, Unavailable):
            return
        if chunk or not offset:
            encoded = base64.b64encode(chunk).decode("ascii")
            yield {"type": "bytes", "file_id": file_id, "offset": offset, "base64": encoded}
        offset += len(chunk)
        if len(chunk) < CHUNK_BYTES:
            return


def reference_lines(conversation_id: int) -> Iterator[Line]:
    """Yield the messages' file references, in the order that record_hash covers."""
    after_seq = 0
    while found := rows(SQL["messages_with_files"], [conversation_id, after_seq, PORTION]):
        files = files_of(message_id for _, message_id in found)
        for seq, message_id in found:
            for file_id, _, *place in files[message_id]:
                names = ("part_ordinal", "field", "start_at", "length")
                yield {"type": "reference", "seq": seq, "file_id": file_id, **dict(zip(names, place, strict=True))}
        after_seq = found[-1][0]
