"""Read the lines of one conversation from a ledger in a stored file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from conversations.content import hashing
from conversations.errors import Invalid
from conversations.files.large_files import LargeFileService
from conversations.files.storage import storing
from conversations.ledger.message_checks import entry_hash_of, metadata_hash_of, part_hash_of, record_hash_of
from conversations.ledger.types import Line

# The maximum size of one line. A line may hold a message with all its parts.
MOST_LINE_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True)
class LedgerCopy:
    """The positions of one conversation's messages and summaries in a ledger file."""

    file_id: str
    messages: Mapping[int, tuple[int, int]]
    summaries: Mapping[str, tuple[int, int]]

    def sealed_messages(self, seqs: Iterable[int]) -> list[Line]:
        """Return the lines of these messages, except lines that contradict their hashes."""
        lines = (_line_at(self.file_id, *self.messages[seq]) for seq in seqs if seq in self.messages)
        return [line for line in lines if _matches_its_hashes(line)]

    def summary(self, summary_id: str) -> Line | None:
        """Return the line of a summary; the caller must check the summary's hash.

        Returns None if the ledger does not have the summary, or if its text was erased.
        """
        if summary_id not in self.summaries:
            return None
        line = _line_at(self.file_id, *self.summaries[summary_id])
        return None if line["erased"] else line


# Stored files never change, so positions stay valid.
@lru_cache(maxsize=2)
def ledger_copy(file_id: str, session_id: str) -> LedgerCopy:
    """Index the lines of one conversation in a ledger file.

    Raises NotFound, Unavailable, and Invalid for a file that is not a ledger.
    """
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
        raise Invalid(f"{file_id} is not a ledger: line {number} is not a ledger line.", code="no_ledger")
    return values


def _line_at(file_id: str, offset: int, length: int) -> Line:
    line = LargeFileService.from_settings().read(file_id=file_id, offset=offset, length=length)
    return _values(file_id, 0, line)


def _lines(file_id: str) -> Iterator[tuple[int, bytes]]:
    """Yield each line with its byte offset."""
    begins = 0
    with LargeFileService.from_settings().stream(file_id=file_id).file as file, storing(f"{file_id} cannot be read"):
        while line := file.readline(MOST_LINE_BYTES + 1):
            if len(line) > MOST_LINE_BYTES:
                raise Invalid(f"{file_id} is not a ledger: it has a line that is too long.", code="no_ledger")
            yield begins, line
            begins += len(line)


def _matches_its_hashes(line: Line) -> bool:
    """Whether the text, metadata and parts of a message match its hashes."""
    if line["erased"]:
        return False
    return (
        hashing.content_hash(line["content"]).hex() == line["content_hash"]
        and metadata_hash_of(line) == line["metadata_hash"]
        and all(part_hash_of(part) == part["part_hash"] for part in line["parts"])
        and entry_hash_of(line) == line["entry_hash"]
        # Messages from older versions of LCM have no record hash.
        and (line.get("record_hash") is None or record_hash_of(line) == line["record_hash"])
    )
