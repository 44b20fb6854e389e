"""Compare a ledger with evidence: an anchor, its last line_hash, or both. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from conversations.errors import Invalid
from conversations.ledger.types import AnchoredReport, Findings, LedgerReport
from conversations.ledger.verifying import Verifier
from integrity.anchors import anchor_file, signing
from integrity.anchors.types import Anchor, AnchoredChain

MISMATCH = "anchor_mismatch"
NOT_ANCHORED = "not_anchored"
SIGNATURE_INVALID = "anchor_signature_invalid"
UNEXPECTED_HEAD = "unexpected_head"
_HASH_DIGITS = 64


@dataclass
class AnchorCheck:
    """Compares the lines of a ledger with an anchor, after verification.

    A conversation may have grown since: the message that was its last must still have the anchored chain_hash.
    """

    anchor: Anchor
    findings: Findings
    # Conversations that were compared, and those that the anchor does not name, which may be newer.
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
        """End the comparison.

        `has_all`: the ledger should have every conversation of its workspace. So should a ledger of several
        conversations, as an export is of one or of all.
        """
        if not self.compared:
            self.findings.add(NOT_ANCHORED, "the anchor names no conversation of this ledger, so it proves nothing")
        if has_all or len(self._seen) > 1:
            for (workspace, session_id), chain in self.anchor.chains.items():
                if workspace == self._workspace and (workspace, session_id) not in self._seen:
                    self._mismatch(chain, "was anchored but does not exist")

    def _begin(self, line: Mapping[str, Any]) -> None:
        name = self._workspace, line["session_id"]
        self._seen.add(name)
        self._current, self._last_seq = self.anchor.chains.get(name), 0
        if self._current is None:
            # Its times do not prove that it is newer: only its own values seal them.
            self.unnamed += 1
            return
        self.compared += 1
        if line["created_at"] != self._current.created_at:
            self._mismatch(self._current, f"was created at {self._current.created_at}, not at {line['created_at']}")

    def _message(self, line: Mapping[str, Any]) -> None:
        self._last_seq = max(self._last_seq, line["seq"])
        chain = self._current
        if chain is not None and line["seq"] == chain.messages and line["chain_hash"] != chain.chain_head:
            self._mismatch(chain, f"differs from the anchored chain_hash at message {chain.messages}")

    def _end(self) -> None:
        chain, self._current = self._current, None
        if chain is not None and self._last_seq < chain.messages:
            self._mismatch(chain, f"has {self._last_seq} messages, but {chain.messages} were anchored")

    def _mismatch(self, chain: AnchoredChain, detail: str) -> None:
        self.findings.add(MISMATCH, f"conversation {chain.session_id[:80]!r} {detail}")


@dataclass(frozen=True)
class Expected:
    """What a ledger must match beyond its own hashes; nothing by default."""

    anchor: Anchor | None = None
    # The hexadecimal public key that must have signed the anchor; any key if None.
    trusted_key: str | None = None
    line_hash: str | None = None

    @classmethod
    def of(
        cls, *, anchor: tuple[str, bytes] | None = None, trusted_key: str | None = None, line_hash: str | None = None
    ) -> Self:
        """Parse the evidence; Invalid if an anchor, a public key or a hash is malformed."""
        if line_hash is not None:
            line_hash = line_hash.strip().lower()
            if len(line_hash) != _HASH_DIGITS or any(digit not in "0123456789abcdef" for digit in line_hash):
                raise Invalid("--expect takes a line_hash: 64 hexadecimal digits.", code="usage")
        if trusted_key is not None and anchor is None:
            raise Invalid("--public-key names the signer of an anchor; give --anchor as well.", code="usage")
        return cls(
            anchor=None if anchor is None else anchor_file.parse(anchor[1], name=anchor[0]),
            trusted_key=None if trusted_key is None else signing.trusted_key(trusted_key),
            line_hash=line_hash,
        )

    def verify(self, verifier: Verifier, lines: Iterable[bytes], *, source: str, has_all: bool) -> LedgerReport:
        """Verify a whole ledger and compare it with the evidence.

        `has_all`: the lines are all conversations of their workspace.
        """
        check = self._check(verifier.findings)
        for line in lines:
            values = verifier.feed(line)
            if values is not None and check is not None:
                check.take(values)
        if check is not None:
            check.finish(has_all=has_all)
        found = verifier.place.line_hash
        verifier.findings.require(
            self.line_hash in (None, found),
            UNEXPECTED_HEAD,
            f"the last line_hash is {found or 'none'}, not the expected one",
        )
        return replace(verifier.finish(source=source), anchor=self._report_of(check))

    def _check(self, findings: Findings) -> AnchorCheck | None:
        """Check the anchor's signature, and return the comparison with it, if any."""
        if self.anchor is None:
            return None
        if not signing.is_signed_by(self.anchor, self.trusted_key):
            findings.add(SIGNATURE_INVALID, "the anchor was altered, or signed with another key")
        return AnchorCheck(self.anchor, findings)

    def _report_of(self, check: AnchorCheck | None) -> AnchoredReport | None:
        if check is None:
            return None
        return AnchoredReport(
            made_at=check.anchor.made_at,
            site=check.anchor.site,
            public_key=check.anchor.public_key,
            key_is_trusted=self.trusted_key is not None,
            conversations=check.compared,
            unnamed_conversations=check.unnamed,
        )


NOTHING_EXPECTED = Expected()
