"""Check the summaries, runs, boundaries and journal of a ledger. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from conversations.content import hashing
from conversations.ledger.lines import as_moment, microseconds
from conversations.ledger.message_checks import MessageCheck
from conversations.ledger.types import Findings, Line
from conversations.ledger.verification_memory import VerificationMemory


class Covers(NamedTuple):
    """The seqs, times, counts and depth that a source covers, and its hash."""

    hash: str
    first_seq: int
    last_seq: int
    earliest_at: int
    latest_at: int
    messages: int
    tokens: int
    depth: int


def circles(after: Mapping[str, str]) -> Iterator[str]:
    """Yield a member of each circle, where following `after` leads back to itself."""
    visited: set[str] = set()
    for each in after:
        path: set[str] = set()
        while each in after and each not in visited:
            visited.add(each)
            path.add(each)
            each = after[each]
        if each in path:
            yield each


@dataclass
class SummaryCheck:
    """Checks the summaries of one conversation; their texts are not kept in memory."""

    findings: Findings
    memory: VerificationMemory
    _known: dict[str, Covers] = field(default_factory=dict)
    _sources: set[str] = field(default_factory=set)
    # The source messages (by seq) and source summaries (by id) of each summary.
    _below: dict[str, tuple[array[int], list[str]]] = field(default_factory=dict)
    # By superseded id: the line, the id and the coverage of the summary that supersedes it.
    _superseded: dict[str, tuple[int, str, Covers]] = field(default_factory=dict)
    file_ids: set[str] = field(default_factory=set)
    has_branches: bool = False

    def summary(self, line: Line) -> None:
        """Check a summary: each of its sources must come before it in the ledger."""
        summary_id, old, require = line["summary_id"], line["supersedes_id"], self.findings.require
        require(summary_id not in self._known, "duplicate_summary_id", f"{summary_id} occurs twice")
        sources = self._sources_of(line)
        covers = Covers(
            hash=line["summary_hash"],
            first_seq=line["first_seq"],
            last_seq=line["last_seq"],
            earliest_at=microseconds(as_moment(line["earliest_at"])),
            latest_at=microseconds(as_moment(line["latest_at"])),
            messages=line["descendant_count"],
            tokens=line["source_tokens"],
            depth=line["depth"],
        )
        self._known[summary_id] = covers
        self.file_ids.update(line["file_ids"])
        if old is not None:
            sentence = f"{summary_id} supersedes {old}, which another summary supersedes"
            require(old not in self._superseded, "superseded_twice", sentence)
            self._superseded[old] = (self.findings.line, summary_id, covers)
        if sources is not None:
            self._hash(line, sources)
            self._range(line, sources, covers)

    def covered_by(self, source: int | str) -> Covers | None:
        """Return what a message or a summary covers; None if it is unknown."""
        if isinstance(source, str):
            return self._known.get(source)
        message = self.memory.get(source)
        if message is None:
            return None
        at = message.created_at
        return Covers(message.content_hash, source, source, at, at, 1, message.token_count, -1)

    def reached_from(self, sources: Sequence[int | str]) -> Iterator[int]:
        """Yield the messages that sources reach, directly or through summaries."""
        rest = list(sources)
        while rest:
            source = rest.pop()
            if isinstance(source, int):
                yield source
            else:
                seqs, source_ids = self._below[source]
                yield from seqs
                rest += source_ids

    def finish(self, file_ids: set[str]) -> None:
        """Check, at the end line, that every named summary and file had a line."""
        for each in circles({old: new for old, (_, new, _) in self._superseded.items()}):
            self.findings.add("supersedes_itself", f"{each} supersedes itself, directly or through others")
        for old, (line, _, covers) in self._superseded.items():
            known = self._known.get(old)
            if known is None:
                self.findings.add("unknown_superseded", f"line {line} supersedes {old}, which is missing")
                continue
            spans = [(each.first_seq, each.last_seq, each.messages, each.depth) for each in (covers, known)]
            sentence = f"line {line} supersedes {old}, which covers other messages"
            self.findings.require(spans[0] == spans[1], "superseded_mismatch", sentence)
        for file_id in sorted(self.file_ids - file_ids):
            self.findings.add("unknown_file", f"a summary names {file_id}, which is missing")

    def _sources_of(self, line: Line) -> list[Covers] | None:
        """Return the coverage of the sources; None, with a finding, if one is unknown."""
        summary_id, counts_once = line["summary_id"], line["supersedes_id"] is None and not self.has_branches
        found: list[Covers] = []
        for sources in (line["source_seqs"], line["source_ids"]):
            is_once = len(sources) == len(set(sources))
            self.findings.require(is_once, "covered_twice", f"{summary_id} has one source twice")
        for seq in line["source_seqs"]:
            named = f"{summary_id} has the source message {seq}"
            message = self.covered_by(seq)
            if message is None:
                self.findings.add("unknown_source", f"{named}, which is missing")
                return None
            if counts_once and self.memory.mark_covered(seq):
                self.findings.add("covered_twice", f"{named}, as another summary has")
            found.append(message)
        for source_id in line["source_ids"]:
            named = f"{summary_id} has the source {source_id}"
            source = self._known.get(source_id)
            if source is None or source_id == summary_id:
                self.findings.add("unknown_source", f"{named}, which is missing before it")
                return None
            if counts_once:
                self.findings.require(
                    source_id not in self._sources, "covered_twice", f"{named}, as another summary has"
                )
                self._sources.add(source_id)
            found.append(source)
        self.findings.require(bool(found), "unknown_source", f"{summary_id} has no source")
        self._below[summary_id] = array("q", line["source_seqs"]), line["source_ids"]
        return found or None

    def _hash(self, line: Line, sources: Sequence[Covers]) -> None:
        summary_id, content = line["summary_id"], line["content"]
        if line["erased"]:
            self.findings.require(content is None, "erased_and_yet_there", f"{summary_id} is erased but has text")
            return
        sealed = hashing.summary_hash((source.hash for source in sources), content or "")
        is_same = content is not None and sealed.hex() == line["summary_hash"]
        sentence = f"the text or the sources of {summary_id} do not match its hash"
        self.findings.require(is_same, "summary_hash_mismatch", sentence)

    def _range(self, line: Line, sources: Sequence[Covers], covers: Covers) -> None:
        _, first, last, earliest, latest, messages, tokens, depths = zip(*sources, strict=True)
        depth = 1 + max(depths)
        expected = Covers(
            covers.hash, min(first), max(last), min(earliest), max(latest), sum(messages), sum(tokens), depth
        )
        kind = "leaf" if depth == 0 else "condensed"
        self.findings.require(
            (covers, line["source_count"], line["kind"]) == (expected, len(sources), kind),
            "summary_range_mismatch",
            f"seqs, times, depth, kind or counts of {line['summary_id']} are not those of its sources",
        )


@dataclass
class RunCheck:
    """Checks the runs and boundaries of one conversation."""

    findings: Findings
    messages: MessageCheck
    _run_ids: set[str] = field(default_factory=set)
    _references: set[str] = field(default_factory=set)

    def run(self, line: Line) -> None:
        """Check the token counts of a run before and after."""
        run_id, before, after = line["run_id"], line["tokens_before"], line["tokens_after"]
        self.findings.require(run_id not in self._run_ids, "duplicate_run_id", f"{run_id} occurs twice")
        self._run_ids.add(run_id)
        # A regenerated summary may be longer than the superseded one.
        may_grow = line["redone_summaries"] > 0
        self.findings.require(
            before >= 0 and after >= 0 and (after <= before or may_grow),
            "run_does_not_add_up",
            f"{run_id} records {before} tokens before and {after} after; `lcm check` finds it in the database, and a "
            "repair corrects it",
        )

    def boundary(self, line: Line) -> None:
        """Check that a boundary has a unique name and follows an existing message."""
        name = line["host_reference"]
        is_new, is_behind = name not in self._references, line["last_seq"] <= self.messages.last_seq
        self.findings.require(is_new, "duplicate_boundary", f"the boundary {name[:80]!r} occurs twice")
        self.findings.require(is_behind, "unknown_message", "this boundary is after the newest message")
        self._references.add(name)


@dataclass
class JournalCheck:
    """Checks the journal of one conversation."""

    findings: Findings
    _last: tuple[str, int] = ("", 0)

    def entry(self, line: Line) -> None:
        """Check that an entry has the next position and matches its hash."""
        subpath, position = line["subpath"], line["position"]
        before = self._last[1] if self._last[0] == subpath else 0
        is_next = position == before + 1 and subpath.encode() >= self._last[0].encode()
        self.findings.require(is_next, "journal_gap", "this entry does not follow the one before")
        self._last = (subpath, position)
        if line["erased"]:
            sentence = "this entry is erased but has text"
            self.findings.require(line["entry"] is None, "erased_and_yet_there", sentence)
            return
        is_same = hashing.journal_hash(line["entry"]).hex() == line["entry_hash"]
        self.findings.require(is_same, "journal_hash_mismatch", "this entry does not match its hash")
