"""Check head moves and session summaries of a ledger. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from conversations.content import hashing
from conversations.ledger.compaction_checks import Covers, SummaryCheck
from conversations.ledger.lines import as_moment, microseconds
from conversations.ledger.message_checks import MessageCheck
from conversations.ledger.types import Findings, Line


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
            self._hash(line, sources)
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

    def _hash(self, line: Line, sources: Sequence[Covers]) -> None:
        if not line["erased"]:
            sealed = hashing.summary_hash((source.hash for source in sources), line["content"] or "")
            sentence = f"the text or the sources of {line['summary_id']} do not match its hash"
            self.findings.require(sealed.hex() == line["summary_hash"], "summary_hash_mismatch", sentence)

    def _range(self, line: Line, sources: Sequence[Covers]) -> None:
        times = [microseconds(as_moment(line[name])) for name in ("earliest_at", "latest_at")]
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
