"""Verifies a ledger in one pass, with memory that stays flat: everything it says is computed anew.

It reads lines, wherever they come from, and never the database; what it must remember of them, it keeps on disk.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, BinaryIO, Self

from conversations.errors import Invalid
from conversations.ledger.checks.file_checks import FileCheck
from conversations.ledger.checks.findings import Findings
from conversations.ledger.checks.message_checks import MessageCheck
from conversations.ledger.checks.run_checks import RunCheck
from conversations.ledger.checks.summary_checks import SummaryCheck
from conversations.ledger.checks.verification_memory import MessageMemory, ReferenceMemory
from conversations.ledger.line_shapes import misfit
from conversations.ledger.lines import FORMAT, VERSION, body_in, body_of, line_hash_of, line_of
from conversations.ledger.progress import Place
from conversations.ledger.types import LedgerReport, Line

# In which order the lines of a conversation come; bytes stand behind their file.
_ORDER = ("conversation", "message", "part", "summary", "run", "boundary", "file", "reference", "end")
_RANK = {**{kind: rank for rank, kind in enumerate(_ORDER)}, "bytes": _ORDER.index("file")}
# So begins every line of a ledger; what begins otherwise is no ledger at all.
_BEGINNING = b'{"type":"'
# A line is as long as what was said in one message: longer ones than this are not ours, and would fill the memory.
LONGEST_LINE = 1024**3


def lines_in(file: BinaryIO) -> Iterator[bytes]:
    """The lines of a ledger with their line feeds; one that is too long comes in pieces, and is none."""
    while line := file.readline(LONGEST_LINE):
        yield line


class Verifier:
    """Takes a ledger line by line, and knows at the end what is wrong with it."""

    def __init__(self) -> None:
        self.findings = Findings()
        self.place = Place()
        self.workspace = ""
        self._memory = MessageMemory()
        self._references = ReferenceMemory()
        self._rank: int | None = None
        self._is_over = False
        # Whether not even the first line is that of a ledger: then nothing is said of the others.
        self._is_none = False
        # Of the conversation that came last.
        self._session_id: str | None = None
        self._is_foreign = False
        self._begin()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._memory.close()
        self._references.close()

    def verify(self, lines: Iterable[bytes], *, source: str) -> LedgerReport:
        """What the whole ledger comes to."""
        for line in lines:
            self.feed(line)
        return self.finish(source=source)

    def feed(self, line: bytes) -> Line | None:
        """Take one line; returns what it says, or None if that cannot be known."""
        self.findings.line += 1
        if self._is_none or self._is_foreign:
            # What another version means by its lines is not known here.
            return None
        if self.findings.line == 1 and not line.startswith(_BEGINNING):
            self._is_none = True
            self._add("malformed_line", "this is no ledger: it does not begin with a header")
            return None
        if not line.endswith(b"\n"):
            self._add("truncated", "the line breaks off")
            return None
        values = self._read(line)
        if values is None:
            return None
        self._seal(line, values)
        if wrong := misfit(values):
            self._add("malformed_line", wrong)
            self.place = replace(self.place, line_hash=values["line_hash"], lines=self.place.lines + 1)
            return None
        if self._is_in_place(values["type"]):
            self._look_at(values)
        self.place = self.place.behind(values, values["line_hash"])
        return values

    def finish(self, *, source: str) -> LedgerReport:
        """No more lines come."""
        if not (self._is_over or self._is_none or self._is_foreign):
            self.findings.line += 1
            self._add("truncated", "the ledger has no trailer: its end is missing")
        return LedgerReport(
            source=source,
            lines=self.place.lines,
            conversations=self.place.conversations,
            counts=self.place.counts,
            line_hash=self.place.line_hash,
            is_clean=not self.findings.by_code,
            finding_count=sum(self.findings.by_code.values()),
            by_code=dict(self.findings.by_code),
            findings=tuple(self.findings.told),
        )

    def _read(self, line: bytes) -> Line | None:
        try:
            values = json.loads(line.decode("ascii"))
            if isinstance(values, dict) and isinstance(values.get("line_hash"), str):
                sealed = {name: value for name, value in values.items() if name != "line_hash"}
                is_ours = line_of(body_of(sealed), values["line_hash"]) == line
                self.findings.require(is_ours, "not_canonical", "an export would write the same in other bytes")
                return values
        except (ValueError, RecursionError):
            pass
        self._add("malformed_line", "this is not a JSON object with a line_hash at its end")
        return None

    def _seal(self, line: bytes, values: Mapping[str, Any]) -> None:
        """By the hash that the line before says it has: one altered line is one finding, not one for all behind it."""
        expected = line_hash_of(body_in(line), previous=self.place.line_hash)
        self.findings.require(
            values["line_hash"] == expected,
            "line_hash_mismatch",
            "this line was altered, or the one before it is not the one that was here",
        )

    def _is_in_place(self, kind: str) -> bool:
        """Whether such a line may come here."""
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
        # A conversation without its first line, or its last, is looked at all the same.
        self._rank = None if kind in ("header", "end", "trailer") else _RANK[kind]
        return is_right or kind not in ("header", "trailer")

    def _begin(self) -> None:
        self._memory.forget()
        self._references.forget()
        self._messages = MessageCheck(self.findings, self._memory, self._references)
        self._summaries = SummaryCheck(self.findings, self._memory)
        self._runs = RunCheck(self.findings)
        self._files = FileCheck(self.findings, self._memory, self._references)

    def _look_at(self, values: Mapping[str, Any]) -> None:
        match values["type"]:
            case "header":
                is_known = (values["format"], values["version"], values["hash"]) == (FORMAT, VERSION, "sha256")
                self.findings.require(is_known, "unsupported_version", "this ledger is of another format or version")
                self._is_foreign = not is_known
                self.workspace = values["workspace"]
            case "conversation":
                self._begin()
                self.findings.require(
                    self._session_id is None or self._session_id < values["session_id"],
                    "unexpected_line",
                    "conversations come by session_id, each once",
                )
                self._session_id = values["session_id"]
            case "message":
                self._messages.message(values)
            case "part":
                self._messages.part(values)
            case "summary":
                self._summaries.summary(values)
            case "run":
                self._runs.run(values)
            case "boundary":
                self._runs.boundary(values, last_seq=self._messages.last_seq)
            case "file":
                self._files.file(values)
            case "bytes":
                self._files.bytes(values)
            case "reference":
                self._files.close()
                self._files.reference(values)
            case "end":
                self._end(values)
            case "trailer":
                self._trailer(values)

    def _end(self, values: Mapping[str, Any]) -> None:
        self._files.finish()
        self._summaries.finish(self._files.files.keys() | self._files.others)
        messages = self._messages
        require = self.findings.require
        require(values["session_id"] == self.place.session_id, "unexpected_line", "this is another conversation's end")
        require(
            values["message_count"] == messages.last_seq,
            "seq_gap",
            f"the conversation has {values['message_count']} messages; the last one here is {messages.last_seq}",
        )
        require(
            (values["chain_head"] or "") == messages.chain_hash,
            "chain_head_mismatch",
            "the chain does not end as the conversation says",
        )
        require(
            values["updated_at"] >= messages.recorded_at,
            "time_goes_back",
            "the conversation was last changed before its last message was recorded",
        )
        require(values["total_tokens"] == messages.tokens, "count_mismatch", "total_tokens is not their sum")
        require(
            values["counts"] == vars(self.place.counts_of_it),
            "count_mismatch",
            "these are not the lines that were counted",
        )

    def _trailer(self, values: Mapping[str, Any]) -> None:
        self._is_over = True
        said = values["conversations"], values["counts"], values["lines"]
        here = self.place.conversations, vars(self.place.counts), self.findings.line
        self.findings.require(said == here, "count_mismatch", "these are not the lines that were counted")

    def _add(self, code: str, detail: str) -> None:
        self.findings.add(code, detail)


@contextmanager
def verified(lines: Iterable[bytes], *, name: str) -> Iterator[Iterator[tuple[Line, bytes]]]:
    """What the lines of a ledger say, each with the bytes that are sealed; Invalid at the first that does not hold."""
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
    """Invalid, naming the line, if there is a finding."""
    if findings.told:
        first = findings.told[0]
        raise Invalid(f"{name}, line {first.line}: {first.detail} [{first.code}].", code="ledger_does_not_verify")
