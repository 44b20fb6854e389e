"""What a ledger that somebody kept says of a conversation: found in a stored file, and read line by line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from conversations.content import hashing
from conversations.errors import Invalid
from conversations.files.large_files import LargeFileService
from conversations.ledger.restoring import new_part
from conversations.store.append import part_row_of

Line = Mapping[str, Any]

CHUNK_BYTES = 1024 * 1024
# One line holds one message, with all that it came with.
MOST_LINE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class LedgerCopy:
    """Where in a file the messages, by seq, and the summaries of one conversation stand."""

    file_id: str
    messages: Mapping[int, tuple[int, int]]
    summaries: Mapping[str, tuple[int, int]]

    @classmethod
    def of(cls, file_id: str, *, session_id: str) -> LedgerCopy:
        """Raises NotFound, Unavailable, and Invalid for a file that is no ledger."""
        return _found_in(file_id, session_id)

    def sealed_messages(self, seqs: Iterable[int]) -> dict[int, Line]:
        """Of these messages, those that the ledger has as they were sealed."""
        lines = ((seq, _line_at(self.file_id, *self.messages[seq])) for seq in seqs if seq in self.messages)
        return {seq: line for seq, line in lines if _is_as_sealed(line)}

    def summary(self, summary_id: str) -> Line | None:
        """What it says of a summary, whose seal its reader must check; None if it does not have its text."""
        if summary_id not in self.summaries:
            return None
        line = _line_at(self.file_id, *self.summaries[summary_id])
        return None if line["erased"] else line


# A stored file is never changed, so that what was found in it stays where it is.
@lru_cache(maxsize=2)
def _found_in(file_id: str, session_id: str) -> LedgerCopy:
    messages: dict[int, tuple[int, int]] = {}
    summaries: dict[str, tuple[int, int]] = {}
    is_inside = False
    for number, (offset, line) in enumerate(_lines(file_id), start=1):
        values = _values(file_id, number, line)
        match values.get("type"):
            case "conversation":
                is_inside = values.get("session_id") == session_id
            case "message" if is_inside:
                messages[values["seq"]] = offset, len(line)
            case "summary" if is_inside:
                summaries[values["summary_id"]] = offset, len(line)
    return LedgerCopy(file_id, messages, summaries)


def _values(file_id: str, number: int, line: bytes) -> Line:
    try:
        values = json.loads(line)
    except ValueError:
        values = None
    if not isinstance(values, dict) or (number == 1 and values.get("format") != "lcm-ledger"):
        raise Invalid(f"{file_id} is no ledger: line {number} is none that a ledger has.", code="no_ledger")
    return values


def _line_at(file_id: str, offset: int, length: int) -> Line:
    line = LargeFileService.from_settings().read(file_id=file_id, offset=offset, length=length)
    return _values(file_id, 0, line)


def _lines(file_id: str) -> Iterator[tuple[int, bytes]]:
    """The lines with the places where they begin."""
    files = LargeFileService.from_settings()
    rest, read, begins = b"", 0, 0
    while chunk := files.read(file_id=file_id, offset=read, length=CHUNK_BYTES):
        read += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > MOST_LINE_BYTES:
            raise Invalid(f"{file_id} is no ledger: a line of it is too long.", code="no_ledger")
        for line in whole:
            yield begins, line
            begins += len(line) + 1
    if rest:
        yield begins, rest


def _is_as_sealed(line: Line) -> bool:
    """Whether the text, the metadata and the parts of a message are what its hashes seal."""
    if line["erased"]:
        return False
    part_hashes = [bytes.fromhex(part_row_of(new_part(dict(part)))["part_hash"]) for part in line["parts"]]
    metadata_hash = hashing.metadata_hash(line["metadata"])
    content_hash = hashing.content_hash(line["content"])
    sealed = hashing.entry_hash(role=line["role"], author=line["author"], content=content_hash, parts=part_hashes)
    return (
        content_hash.hex() == line["content_hash"]
        and (metadata_hash and metadata_hash.hex()) == line["metadata_hash"]
        and [each.hex() for each in part_hashes] == [part["part_hash"] for part in line["parts"]]
        and sealed.hex() == line["entry_hash"]
        and _has_its_record(line)
    )


def _has_its_record(line: Line) -> bool:
    """Whether what is sealed beside the entry fits; messages from before that, and ledgers of version 1, have none."""
    if line.get("record_hash") is None:
        return True
    given = [(part.get("tool_input"), part.get("metadata")) for part in line["parts"]]
    sealed = hashing.record_hash(
        idempotency_key=line["idempotency_key"],
        token_count=line["token_count"],
        token_counter=line["token_counter"],
        keys=hashing.key_order(line["metadata"], given),
        files=line["files"],
    )
    return sealed.hex() == line["record_hash"]
