"""Compares what is stored with an anchor: a few statements, whatever the length of the chains."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

from django.db import connection

from conversations.ledger.lines import as_text
from integrity.anchors.ledger_comparison import MISMATCH, SIGNATURE_INVALID
from integrity.anchors.types import Anchor, AnchoredActs, AnchoredChain, AnchorFinding

PORTION = 1_000
MOST_LISTED = 100
_STORED = """
    SELECT c.conversation_id, c.created_at, c.next_seq - 1, encode(m.chain_hash, 'hex')
    FROM unnest(%s::text[], %s::text[], %s::bigint[]) WITH ORDINALITY AS given(workspace, session_id, messages, place)
    LEFT JOIN (workspaces w JOIN conversations c USING (workspace_id))
      ON (w.name, c.session_id) = (given.workspace, given.session_id)
    LEFT JOIN messages m ON (m.conversation_id, m.seq) = (c.conversation_id, given.messages)
    ORDER BY given.place
"""


@dataclass
class Differences:
    """What is not as it was anchored: all are counted, the first are kept."""

    count: int = 0
    # Conversations that are there under the name that was anchored.
    matched: int = 0
    first: list[AnchorFinding] = field(default_factory=list)

    def add(self, code: str, id: str, detail: str) -> None:
        self.count += 1
        if len(self.first) < MOST_LISTED:
            self.first.append(AnchorFinding(code, id, detail))


def compare(anchor: Anchor, *, is_signed: bool) -> Differences:
    """Every chain that an anchor names against the stored hash at that place."""
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
        found.add(MISMATCH, "audit log", f"act number {acts.number} was anchored, and is not there")
    elif stored[0] != acts.chain_hash:
        found.add(MISMATCH, "audit log", f"act number {acts.number} has another chain_hash than was anchored")


def _compare_chains(chains: list[AnchoredChain], found: Differences) -> None:
    columns = [[getattr(chain, name) for chain in chains] for name in ("workspace", "session_id", "messages")]
    with connection.cursor() as cursor:
        cursor.execute(_STORED, columns)
        rows = cursor.fetchall()
    for chain, row in zip(chains, rows, strict=True):
        found.matched += row[0] is not None
        if wrong := _wrong(chain, *row):
            found.add(MISMATCH, f"{chain.workspace}: {chain.session_id}", wrong)


def _wrong(
    chain: AnchoredChain, conversation_id: int | None, created_at: datetime, messages: int, chain_hash: str | None
) -> str:
    """How a conversation differs from what was anchored; empty where it does not."""
    if conversation_id is None:
        return "was anchored, and is not there"
    if as_text(created_at) != chain.created_at:
        return f"was begun at {chain.created_at}, not at {as_text(created_at)}"
    if chain.messages and chain_hash is None:
        return f"has {messages} messages and not number {chain.messages}, which was anchored"
    if chain.messages and chain_hash != chain.chain_head:
        return f"has another chain_hash at message {chain.messages} than was anchored"
    return ""
