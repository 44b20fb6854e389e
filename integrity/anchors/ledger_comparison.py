"""Compares the conversations of a ledger with an anchor, line by line. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from conversations.ledger.checks.findings import Findings
from integrity.anchors.types import Anchor, AnchoredChain

MISMATCH = "anchor_mismatch"
NOT_ANCHORED = "not_anchored"
SIGNATURE_INVALID = "anchor_signature_invalid"


@dataclass
class AnchorCheck:
    """Takes the lines of a ledger after the verifier has taken them.

    A conversation may have grown since: the message that was its last must still have the chain_hash that was anchored.
    """

    anchor: Anchor
    findings: Findings
    # Conversations that were compared, and those that the anchor does not name: they may be newer.
    compared: int = 0
    unnamed: int = 0
    _workspace: str = ""
    _seen: set[tuple[str, str]] = field(default_factory=set)
    _current: AnchoredChain | None = None
    _last_seq: int = 0

    def take(self, line: Mapping[str, Any]) -> None:
        match line["type"]:
            case "header":
                self._workspace = line["workspace"]
            case "conversation":
                self._begin(line)
            case "message":
                self._message(line)
            case "end":
                self._end()

    def finish(self, *, has_all: bool) -> None:
        """No more lines come. `has_all`: the ledger should have every conversation of its workspace.

        So should one of several conversations, as an export is of one or of all.
        """
        if not self.compared:
            self.findings.add(NOT_ANCHORED, "the anchor names no conversation of this ledger, and proves nothing of it")
        if has_all or len(self._seen) > 1:
            for (workspace, session_id), chain in self.anchor.chains.items():
                if workspace == self._workspace and (workspace, session_id) not in self._seen:
                    self._mismatch(chain, "was anchored, and is not there")

    def _begin(self, line: Mapping[str, Any]) -> None:
        name = self._workspace, line["session_id"]
        self._seen.add(name)
        self._current, self._last_seq = self.anchor.chains.get(name), 0
        if self._current is None:
            # Its times are no evidence that it is newer: nothing seals them but what it says itself.
            self.unnamed += 1
            return
        self.compared += 1
        if line["created_at"] != self._current.created_at:
            self._mismatch(self._current, f"was begun at {self._current.created_at}, not at {line['created_at']}")

    def _message(self, line: Mapping[str, Any]) -> None:
        self._last_seq = max(self._last_seq, line["seq"])
        chain = self._current
        if chain is not None and line["seq"] == chain.messages and line["chain_hash"] != chain.chain_head:
            self._mismatch(chain, f"has another chain_hash at message {chain.messages} than was anchored")

    def _end(self) -> None:
        chain, self._current = self._current, None
        if chain is not None and self._last_seq < chain.messages:
            self._mismatch(chain, f"has {self._last_seq} messages, and {chain.messages} were anchored")

    def _mismatch(self, chain: AnchoredChain, detail: str) -> None:
        self.findings.add(MISMATCH, f"conversation {chain.session_id[:80]!r} {detail}")
