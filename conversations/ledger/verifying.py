"""Verify every hash and count of a ledger in one pass. Pure.

The verification reads only lines, never LCM's database. Values that later lines are compared with are kept on disk.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import BinaryIO, Self

from conversations.errors import Invalid
from conversations.ledger.compaction_checks import (
    JournalCheck,
    MoveCheck,
    RunCheck,
    SessionCheck,
    SummaryCheck,
    circles,
)
from conversations.ledger.file_checks import FileCheck
from conversations.ledger.line_shapes import misfit
from conversations.ledger.lines import FORMAT, VERSION, LedgerState, body_in, body_of, line_hash_of, line_of
from conversations.ledger.message_checks import MessageCheck
from conversations.ledger.types import Findings, LedgerReport, Line
from conversations.ledger.verification_memory import VerificationMemory

# The order of a conversation's lines; bytes follow their file.
_ORDER = (
    "conversation", "message", "part", "head_move", "summary", "session_summary", "run", "boundary", "journal",
    "file", "reference", "end",
)  # fmt: skip
_RANK = {**{kind: rank for rank, kind in enumerate(_ORDER)}, "bytes": _ORDER.index("file")}
# Every line of a ledger begins like this.
_BEGINNING = b'{"type":"'
# A line holds at most one message. A longer line is not from a ledger, and would exhaust memory.
LONGEST_LINE = 1024**3


def lines_in(file: BinaryIO) -> Iterator[bytes]:
    """Yield lines with line feeds; a line over LONGEST_LINE as invalid pieces."""
    while line := file.readline(LONGEST_LINE):
        yield line


class Verifier:
    """Takes a ledger line by line, and reports every contradiction."""

    def __init__(self) -> None:
        self.findings = Findings()
        self.place = LedgerState()
        self.workspace = ""
        self._memory = VerificationMemory()
        self._rank: int | None = None
        self._is_over = False
        # Whether the first line is not that of a ledger, or is of another version. The other lines are then skipped.
        self._is_foreign = False
        # The session of the last conversation.
        self._session_id: str | None = None
        # For each conversation that has a parent: the session of the parent.
        self._parents: dict[str, str] = {}
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()

    def feed(self, line: bytes) -> Line | None:
        """Take one line; return its members, or None if it is malformed."""
        self.findings.line += 1
        if self._is_foreign:
            return None
        if self.findings.line == 1 and not line.startswith(_BEGINNING):
            self._is_foreign = True
            self.findings.add("malformed_line", "this is not a ledger: it does not begin with a header")
            return None
        if not line.endswith(b"\n"):
            self.findings.add("truncated", "the line is incomplete")
            return None
        values = self._read(line)
        if values is None:
            return None
        # `self.place.line_hash` is the recorded hash of the line before, so that a change causes only one finding.
        is_sealed = values["line_hash"] == line_hash_of(body_in(line), previous=self.place.line_hash)
        sentence = "this line was altered, or the line before it was replaced"
        self.findings.require(is_sealed, "line_hash_mismatch", sentence)
        if wrong := misfit(values):
            self.findings.add("malformed_line", wrong)
            self.place = replace(self.place, line_hash=values["line_hash"], lines=self.place.lines + 1)
            return None
        if self._is_allowed(values["type"]):
            self._checks[values["type"]](values)
        self.place = self.place.behind(values, values["line_hash"])
        return values

    def finish(self, *, source: str) -> LedgerReport:
        """End the ledger and return the report."""
        if not (self._is_over or self._is_foreign):
            self.findings.line += 1
            self.findings.add("truncated", "the ledger has no trailer: its end is missing")
        return LedgerReport(
            source=source,
            lines=self.place.lines,
            conversations=self.place.conversations,
            counts=self.place.counts,
            line_hash=self.place.line_hash,
            is_clean=not self.findings.by_code,
            finding_count=sum(self.findings.by_code.values()),
            by_code=dict(self.findings.by_code),
            findings=tuple(self.findings.first),
        )

    def _read(self, line: bytes) -> Line | None:
        try:
            values = json.loads(line.decode("ascii"))
            if isinstance(values, dict) and isinstance(values.get("line_hash"), str):
                sealed = {name: value for name, value in values.items() if name != "line_hash"}
                is_ours = line_of(body_of(sealed), values["line_hash"]) == line
                self.findings.require(is_ours, "not_canonical", "an export would serialize this line differently")
                return values
        except (ValueError, RecursionError):
            pass
        self.findings.add("malformed_line", "this is not a JSON object that ends with a line_hash")
        return None

    def _is_allowed(self, kind: str) -> bool:
        """Whether this type of line is allowed here."""
        is_first = self.findings.line == 1
        if kind == "header":
            is_right = is_first
        elif is_first or self._is_over:
            is_right = False
        elif kind in ("conversation", "trailer"):
            is_right = self._rank is None
        else:
            is_right = self._rank is not None and _RANK[kind] >= self._rank
        self.findings.require(is_right, "unexpected_line", f"a {kind} line does not belong here")
        # A conversation without its first or last line is checked nevertheless.
        self._rank = None if kind in ("header", "end", "trailer") else _RANK[kind]
        return is_right or kind not in ("header", "trailer")

    def _begin(self) -> None:
        """Reset the checks for the next conversation."""
        self._memory.forget()
        self._messages = MessageCheck(self.findings, self._memory)
        self._summaries = SummaryCheck(self.findings, self._memory)
        moves = MoveCheck(self.findings, self._messages, self._summaries)
        self._sessions = SessionCheck(self.findings, self._summaries, moves)
        self._journal = JournalCheck(self.findings)
        self._files = FileCheck(self.findings, self._memory)
        runs = RunCheck(self.findings, self._messages)
        self._checks: dict[str, Callable[[Line], None]] = {
            "header": self._header,
            "conversation": self._conversation,
            "message": self._messages.message,
            "part": self._messages.part,
            "head_move": moves.move,
            "summary": self._summaries.summary,
            "session_summary": self._sessions.session_summary,
            "run": runs.run,
            "boundary": runs.boundary,
            "journal": self._journal.entry,
            "file": self._files.file,
            "bytes": self._files.bytes,
            "reference": self._files.reference,
            "end": self._end,
            "trailer": self._trailer,
        }

    def _header(self, values: Line) -> None:
        is_known = (values["format"], values["version"], values["hash"]) == (FORMAT, VERSION, "sha256")
        self.findings.require(is_known, "unsupported_version", "this ledger is of another format or version")
        self._is_foreign = not is_known
        self.workspace = values["workspace"]

    def _conversation(self, values: Line) -> None:
        self._begin()
        is_next = self._session_id is None or self._session_id < values["session_id"]
        sentence = "conversations must be ordered by session_id, each once"
        self.findings.require(is_next, "unexpected_line", sentence)
        self._session_id = values["session_id"]

    def _end(self, values: Line) -> None:
        self._files.finish()
        self._summaries.finish(self._files.files.keys() | self._files.others)
        self._sessions.finish(values)
        if "parent_session_id" in values:
            self._parents[values["session_id"]] = values["parent_session_id"]
        messages, require = self._messages, self.findings.require
        is_of_it = values["session_id"] == self.place.session_id
        require(is_of_it, "unexpected_line", "this is the end of another conversation")
        count, last_seq = values["message_count"], messages.last_seq
        sentence = f"the conversation has {count} messages, but the last one here is {last_seq}"
        require(count == last_seq, "seq_gap", sentence)
        is_head = (values["chain_head"] or "") == messages.chain_hash
        require(is_head, "chain_head_mismatch", "the chain does not end with the conversation's chain_head")
        is_later = values["updated_at"] >= messages.recorded_at
        sentence = "the conversation was last written before its last message was recorded"
        require(is_later, "time_goes_back", sentence)
        is_sum = values["total_tokens"] == messages.tokens
        require(is_sum, "count_mismatch", "total_tokens is not the sum of the messages")
        is_counted = values["counts"] == self.place.counts_of_it.as_counts()
        require(is_counted, "count_mismatch", "the counts are not those of the lines")

    def _trailer(self, values: Line) -> None:
        self._is_over = True
        recorded = values["conversations"], values["counts"], values["lines"]
        counted = self.place.conversations, self.place.counts.as_counts(), self.findings.line
        self.findings.require(recorded == counted, "count_mismatch", "the counts are not those of the lines")
        for each in circles(self._parents):
            # A conversation that is directly its own parent has its finding already.
            if self._parents[each] != each:
                self.findings.add("parent_mismatch", f"{each[:80]!r} is its own parent through others")


@contextmanager
def verified(lines: Iterable[bytes], *, name: str) -> Iterator[Iterator[tuple[Line, bytes]]]:
    """Yield verified lines with their bodies (see `body_of`); Invalid at a finding."""
    with Verifier() as verifier:

        def checked() -> Iterator[tuple[Line, bytes]]:
            for line in lines:
                values = verifier.feed(line)
                refuse(verifier.findings, name=name)
                assert values is not None
                yield values, body_in(line)
            verifier.finish(source=name)
            refuse(verifier.findings, name=name)

        yield checked()


def refuse(findings: Findings, *, name: str) -> None:
    """Raise Invalid with the first finding, if there is one."""
    if findings.first:
        first = findings.first[0]
        raise Invalid(f"{name}, line {first.line}: {first.detail} [{first.code}].", code="ledger_does_not_verify")
