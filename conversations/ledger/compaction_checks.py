"""Check summaries, runs, boundaries, journal and head moves of a ledger. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from conversations.content import hashing
from conversations.ledger.lines import microseconds
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


def check_summary_hash(findings: Findings, line: Line, sources: Sequence[Covers]) -> None:
    """Check the hash of a summary over its sources and its text, unless erased."""
    if not line["erased"]:
        sealed = hashing.summary_hash((source.hash for source in sources), line["content"] or "")
        sentence = f"the text or the sources of {line['summary_id']} do not match its hash"
        is_same = line["content"] is not None and sealed.hex() == line["summary_hash"]
        findings.require(is_same, "summary_hash_mismatch", sentence)


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
            earliest_at=microseconds(line["earliest_at"]),
            latest_at=microseconds(line["latest_at"]),
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
        if line["erased"]:
            is_empty = line["content"] is None
            require(is_empty, "erased_and_yet_there", f"{summary_id} is erased but has text")
        if sources is not None:
            check_summary_hash(self.findings, line, sources)
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


@dataclass
class MoveCheck:
    """Checks the head moves of one conversation, which come oldest first."""

    findings: Findings
    messages: MessageCheck
    summaries: SummaryCheck
    # For each move its at_seq and head_seq: the message with the seq `at_seq` follows the message `head_seq`.
    _moves: list[tuple[int, int]] = field(default_factory=list)

    def move(self, line: Line) -> None:
        """Check that a move follows the one before, and goes to an earlier message."""
        number, at_seq = line["number"], line["at_seq"]
        moved_at = self._moves[-1][0] if self._moves else 1
        is_next = number == len(self._moves) + 1 and moved_at <= at_seq <= self.messages.last_seq + 1
        self.findings.require(is_next, "move_out_of_order", "this move of the head does not follow the one before")
        is_back = line["head_seq"] < at_seq
        self.findings.require(is_back, "unknown_message", "this move of the head does not lead to an earlier message")
        self._moves.append((at_seq, line["head_seq"]))
        # Each branch has its own summaries. Summaries of several branches may have the same sources.
        self.summaries.has_branches = True

    def off_path(self, head: int) -> Iterator[range]:
        """Yield the ranges of seqs up to `head` that are not on the path to it."""
        for at_seq, head_seq in reversed(self._moves):
            if at_seq <= head:
                yield range(head_seq + 1, at_seq)
                head = head_seq


@dataclass
class SessionCheck:
    """Checks the session summaries of one conversation, which come oldest first."""

    findings: Findings
    summaries: SummaryCheck
    moves: MoveCheck
    _ids: set[str] = field(default_factory=set)
    _projects: set[str] = field(default_factory=set)
    # The last session summary so far, without its text.
    _newest: Line | None = None

    def session_summary(self, line: Line) -> None:
        """Check a session summary, which supersedes the one before it."""
        summary_id, require = line["summary_id"], self.findings.require
        require(summary_id not in self._ids, "duplicate_summary_id", f"{summary_id} occurs twice")
        self._ids.add(summary_id)
        before = self._newest and self._newest["summary_id"]
        sentence = f"{summary_id} does not supersede the session summary before it"
        require(line["supersedes_id"] == before, "superseded_mismatch", sentence)
        if line["project"] is not None:
            self._projects.add(line["project"])
        self._newest = {name: value for name, value in line.items() if name != "content"}
        is_there = bool(line["content"])
        sentence = f"{summary_id} is erased but has text, or has none and is not erased"
        require(is_there is not line["erased"], "erased_and_yet_there", sentence)
        sources = self._sources_of(line)
        if sources:
            check_summary_hash(self.findings, line, sources)
            self._range(line, sources)

    def finish(self, end: Line) -> None:
        """Check, at the end line, the newest summary's coverage, projects and parent."""
        self._require_every_message()
        for project in sorted(self._projects - {end.get("project")}):
            self.findings.add("project_mismatch", f"a session summary is of another project: {project[:80]!r}")
        parent, link = end.get("parent_session_id"), end.get("parent_link")
        self.findings.require(
            (parent is None) == (link is None) and parent != end["session_id"],
            "parent_mismatch",
            "a conversation has a parent and a parent_link or neither, and is not its own parent",
        )

    def _sources_of(self, line: Line) -> list[Covers] | None:
        """Return the coverage of the sources; None, with a finding, if one is unknown."""
        summary_id, sources = line["summary_id"], line["sources"]
        self.findings.require(bool(sources), "unknown_source", f"{summary_id} has no source")
        is_once = len(sources) == len(set(sources))
        self.findings.require(is_once, "covered_twice", f"{summary_id} has one source twice")
        found = []
        for source in sources:
            covers = self.summaries.covered_by(source)
            if covers is None:
                self.findings.add("unknown_source", f"{summary_id} has the source {source}, which is missing")
                return None
            found.append(covers)
        return found

    def _range(self, line: Line, sources: Sequence[Covers]) -> None:
        times = [microseconds(line[name]) for name in ("earliest_at", "latest_at")]
        least = min(each.first_seq for each in sources), min(each.earliest_at for each in sources)
        greatest = max(each.last_seq for each in sources), max(each.latest_at for each in sources)
        self.findings.require(
            ((line["first_seq"], times[0]), (line["last_seq"], times[1])) == (least, greatest),
            "summary_range_mismatch",
            f"seqs or times of {line['summary_id']} are not those of its sources",
        )

    def _require_every_message(self) -> None:
        """Check that the newest summary reaches each message on its path once."""
        newest = self._newest
        # In a ledger with findings, following sources might never end.
        if newest is None or self.findings.by_code:
            return
        last_seq, sources = newest["last_seq"], newest["sources"]
        off_path = list(self.moves.off_path(last_seq))
        covers = [self.summaries.covered_by(source) for source in sources]
        is_whole = sum(each.messages for each in covers if each) + sum(map(len, off_path)) == last_seq
        if is_whole:
            # The total is right. So if all seqs are different, each message is reached once, and none off the path.
            seqs = bytearray(last_seq + 1)
            for stretch in off_path:
                seqs[stretch.start : stretch.stop] = b"\1" * len(stretch)
            for seq in self.summaries.reached_from(sources):
                seqs[seq] = 1
            is_whole = sum(seqs) == last_seq
        sentence = f"{newest['summary_id']} does not reach each message of its branch up to its last_seq exactly once"
        self.findings.require(is_whole, "summary_range_mismatch", sentence)
