"""What somebody kept of a ledger elsewhere, to compare it with: an anchor, its last line_hash, or both."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

from conversations.errors import Invalid
from conversations.ledger.checks.findings import Findings
from conversations.ledger.types import AnchoredReport, LedgerReport
from conversations.ledger.verifying import Verifier
from integrity.anchors import anchor_file, signing
from integrity.anchors.ledger_comparison import SIGNATURE_INVALID, AnchorCheck
from integrity.anchors.types import Anchor

UNEXPECTED_HEAD = "unexpected_head"
_HASH_DIGITS = 64


@dataclass(frozen=True)
class Expected:
    """Nothing is expected of a ledger but that its own hashes hold, unless something is given here."""

    anchor: Anchor | None = None
    # The public key, in hexadecimal digits, that must have signed the anchor; any key without it.
    trusted_key: str | None = None
    line_hash: str | None = None

    @classmethod
    def of(
        cls, *, anchor: tuple[str, bytes] | None = None, trusted_key: str | None = None, line_hash: str | None = None
    ) -> Self:
        """From the name and content of an anchor; Invalid for what is no anchor, no public key or no hash."""
        if line_hash is not None:
            line_hash = line_hash.strip().lower()
            if len(line_hash) != _HASH_DIGITS or any(digit not in "0123456789abcdef" for digit in line_hash):
                raise Invalid("--expect takes a line_hash: 64 hexadecimal digits.", code="usage")
        if trusted_key is not None and anchor is None:
            raise Invalid("--public-key says who signed the anchor; give --anchor, too.", code="usage")
        return cls(
            anchor=None if anchor is None else anchor_file.parse(anchor[1], name=anchor[0]),
            trusted_key=None if trusted_key is None else signing.trusted_key(trusted_key),
            line_hash=line_hash,
        )

    def verify(self, verifier: Verifier, lines: Iterable[bytes], *, source: str, has_all: bool) -> LedgerReport:
        """What the whole ledger comes to, compared with what is expected of it.

        `has_all`: these are all conversations of their workspace.
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
            f"the last line_hash is {found or 'none'}, and not the one that was kept",
        )
        return replace(verifier.finish(source=source), anchor=self._report_of(check))

    def _check(self, findings: Findings) -> AnchorCheck | None:
        """What compares the lines with the anchor, if there is one; its signature is looked at first."""
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
