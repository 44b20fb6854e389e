"""Compare a ledger with evidence: an anchor, a known last line_hash, or both."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from conversations.errors import Invalid
from conversations.ledger.types import AnchoredReport, Findings, LedgerReport
from conversations.ledger.verifying import Verifier
from integrity.anchors import anchor_file, signing
from integrity.anchors.anchor_file import Anchor, AnchoredChain

MISMATCH = "anchor_mismatch"
NOT_ANCHORED = "not_anchored"
SIGNATURE_INVALID = "anchor_signature_invalid"
UNEXPECTED_HEAD = "unexpected_head"
MISSING = "was anchored but does not exist"
NOT_SIGNED = "the anchor was altered, or signed with another key"
_HASH = re.compile("[0-9a-f]{64}")


@dataclass
class AnchorCheck:
    """Compares the lines of a ledger with an anchor, after verification.

    A conversation may have newer messages. The last message of the anchor must still have the anchored chain_hash.
    """

    anchor: Anchor
    findings: Findings
    # The number of conversations that were compared, and of those that the anchor does not name: they may be newer.
    compared: int = 0
    unnamed: int = 0
    _workspace: str = ""
    _seen: set[tuple[str, str]] = field(default_factory=set)
    # For the current conversation, if it is in the anchor: its anchored chain, and its values in the ledger.
    _current: AnchoredChain | None = None
    _found: dict[str, Any] = field(default_factory=dict)

    def compare_line(self, line: Mapping[str, Any]) -> None:
        if line["type"] == "header":
            self._workspace = line["workspace"]
        elif line["type"] == "conversation":
            name = self._workspace, line["session_id"]
            self._seen.add(name)
            self._current = self.anchor.chains.get(name)
            self._found = {"created_at": line["created_at"], "messages": 0, "chain_hash": None}
            # `created_at` does not prove that an unnamed conversation is newer, because the anchor does not cover it.
            self.compared += self._current is not None
            self.unnamed += self._current is None
        elif self._current is None:
            return
        elif line["type"] == "message":
            self._found["messages"] = max(self._found["messages"], line["seq"])
            if line["seq"] == self._current.messages:
                self._found["chain_hash"] = line["chain_hash"]
        elif line["type"] == "end":
            if wrong := self._current.difference(**self._found):
                self._mismatch(self._current, wrong)
            self._current = None

    def finish(self, *, has_all: bool) -> None:
        """End the comparison.

        With `has_all`, an anchored conversation of the workspace that is not in the ledger is a finding. The same holds
        for every ledger of several conversations, because an export contains either one conversation or all.
        """
        if not self.compared:
            self.findings.add(NOT_ANCHORED, "the anchor names no conversation of this ledger, so it proves nothing")
        if has_all or len(self._seen) > 1:
            for name, chain in self.anchor.chains.items():
                if chain.workspace == self._workspace and name not in self._seen:
                    self._mismatch(chain, MISSING)

    def _mismatch(self, chain: AnchoredChain, detail: str) -> None:
        self.findings.add(MISMATCH, f"conversation {chain.session_id[:80]!r} {detail}")


@dataclass(frozen=True)
class Expected:
    """Evidence that a ledger must match besides its own hashes; by default none."""

    anchor: Anchor | None = None
    # The hexadecimal public key that must have signed the anchor; any key if None.
    trusted_key: str | None = None
    line_hash: str | None = None

    @classmethod
    def of(
        cls, *, anchor: tuple[str, bytes] | None = None, trusted_key: str | None = None, line_hash: str | None = None
    ) -> Self:
        """Parse the evidence; raises Invalid if an anchor, key or hash is malformed."""
        if line_hash is not None:
            line_hash = line_hash.strip().lower()
            if not _HASH.fullmatch(line_hash):
                raise Invalid("--expect takes a line_hash: 64 hexadecimal digits.", code="usage")
        if trusted_key is not None and anchor is None:
            raise Invalid("--public-key names the signer of an anchor; give --anchor as well.", code="usage")
        return cls(
            anchor=None if anchor is None else anchor_file.parse(anchor[1], name=anchor[0]),
            trusted_key=None if trusted_key is None else signing.read_public_key(trusted_key),
            line_hash=line_hash,
        )

    def verify(self, verifier: Verifier, lines: Iterable[bytes], *, source: str, has_all: bool) -> LedgerReport:
        """Verify a whole ledger and compare it with the evidence.

        `has_all` says that the lines should have all conversations of their workspace.
        """
        check = None if self.anchor is None else AnchorCheck(self.anchor, verifier.findings)
        if check is not None and not signing.is_signed_by(check.anchor, self.trusted_key):
            verifier.findings.add(SIGNATURE_INVALID, NOT_SIGNED)
        for line in lines:
            values = verifier.feed(line)
            if values is not None and check is not None:
                check.compare_line(values)
        compared = None
        if check is not None:
            check.finish(has_all=has_all)
            header = check.anchor.header
            compared = AnchoredReport(
                made_at=header.made_at,
                site=header.site,
                public_key=header.public_key,
                key_is_trusted=self.trusted_key is not None,
                conversations=check.compared,
                unnamed_conversations=check.unnamed,
            )
        found = verifier.place.line_hash
        verifier.findings.require(
            self.line_hash in (None, found),
            UNEXPECTED_HEAD,
            f"the last line_hash is {found or 'none'}, not the expected one",
        )
        return replace(verifier.finish(source=source), anchor=compared)


NOTHING_EXPECTED = Expected()
