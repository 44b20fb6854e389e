"""Compare the database with an anchor, in a few statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from conversations.ledger.lines import as_text
from conversations.sql import load, rows
from integrity.anchors.expectations import MISMATCH, MISSING, NOT_SIGNED, SIGNATURE_INVALID
from integrity.anchors.types import Anchor, AnchoredActs, AnchoredChain, AnchorFinding

PORTION = 1_000
MOST_LISTED = 100
_STORED_CHAINS = load("integrity/reports.sql")["stored_chains"]


@dataclass
class Differences:
    """Differences from an anchor: all are counted, the first are kept."""

    count: int = 0
    # Anchored conversations that exist under their name.
    matched: int = 0
    first: list[AnchorFinding] = field(default_factory=list)

    def add(self, code: str, id: str, detail: str) -> None:
        self.count += 1
        if len(self.first) < MOST_LISTED:
            self.first.append(AnchorFinding(code, id, detail))


def compare(anchor: Anchor, *, is_signed: bool) -> Differences:
    """Compare every chain that an anchor names with the stored hash at that message."""
    found = Differences()
    if not is_signed:
        found.add(SIGNATURE_INVALID, "signature", NOT_SIGNED)
    _compare_acts(anchor.acts, found)
    chains = iter(anchor.chains.values())
    while portion := list(islice(chains, PORTION)):
        _compare_chains(portion, found)
    return found


def _compare_acts(acts: AnchoredActs, found: Differences) -> None:
    if not acts.number:
        return
    stored = rows("SELECT encode(chain_hash, 'hex') FROM audit_chain WHERE number = %s", [acts.number])
    if not stored:
        found.add(MISMATCH, "audit log", f"act number {acts.number} {MISSING}")
    elif stored != [(acts.chain_hash,)]:
        found.add(MISMATCH, "audit log", f"act number {acts.number} differs from the anchored chain_hash")


def _compare_chains(chains: list[AnchoredChain], found: Differences) -> None:
    columns = [[getattr(chain, name) for chain in chains] for name in ("workspace", "session_id", "messages")]
    for chain, row in zip(chains, rows(_STORED_CHAINS, columns), strict=True):
        conversation_id, created_at, messages, chain_hash = row
        if conversation_id is None:
            wrong = MISSING
        else:
            found.matched += 1
            wrong = chain.difference(created_at=as_text(created_at), messages=messages, chain_hash=chain_hash)
        if wrong:
            found.add(MISMATCH, f"{chain.workspace}: {chain.session_id}", wrong)
