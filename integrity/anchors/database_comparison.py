"""Compare the database with an anchor, in a few statements."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from django.db import connection

from conversations.ledger.lines import as_text
from conversations.sql import load
from integrity.anchors.expectations import MISMATCH, SIGNATURE_INVALID
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
        found.add(SIGNATURE_INVALID, "signature", "the anchor was altered, or signed with another key")
    _compare_acts(anchor.acts, found)
    chains = iter(anchor.chains.values())
    while portion := list(islice(chains, PORTION)):
        _compare_chains(portion, found)
    return found


def _compare_acts(acts: AnchoredActs, found: Differences) -> None:
    if not acts.number:
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT encode(chain_hash, 'hex') FROM audit_chain WHERE number = %s", [acts.number])
        stored = cursor.fetchone()
    if stored is None:
        found.add(MISMATCH, "audit log", f"act number {acts.number} was anchored but does not exist")
    elif stored[0] != acts.chain_hash:
        found.add(MISMATCH, "audit log", f"act number {acts.number} differs from the anchored chain_hash")


def _compare_chains(chains: list[AnchoredChain], found: Differences) -> None:
    columns = [[getattr(chain, name) for chain in chains] for name in ("workspace", "session_id", "messages")]
    with connection.cursor() as cursor:
        cursor.execute(_STORED_CHAINS, columns)
        rows = cursor.fetchall()
    for chain, row in zip(chains, rows, strict=True):
        found.matched += row[0] is not None
        if wrong := _wrong(chain, *row):
            found.add(MISMATCH, f"{chain.workspace}: {chain.session_id}", wrong)


def _wrong(
    chain: AnchoredChain, conversation_id: int | None, created_at: datetime, messages: int, chain_hash: str | None
) -> str:
    """Describe how a conversation differs from its anchored chain.

    Empty if it does not.
    """
    if conversation_id is None:
        return "was anchored but does not exist"
    if as_text(created_at) != chain.created_at:
        return f"was created at {chain.created_at}, not at {as_text(created_at)}"
    if chain.messages and chain_hash is None:
        return f"has {messages} messages, without the anchored number {chain.messages}"
    if chain.messages and chain_hash != chain.chain_head:
        return f"differs from the anchored chain_hash at message {chain.messages}"
    return ""
