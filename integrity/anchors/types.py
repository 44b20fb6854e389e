"""The records of anchors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class AnchoredChain:
    """A conversation's chain as an anchor names it: how many messages it has, and the last chain_hash."""

    workspace: str
    session_id: str
    created_at: str
    messages: int
    # None without messages.
    chain_head: str | None


@dataclass(frozen=True)
class AnchoredActs:
    """The audit log's chain as an anchor names it: how many acts it has, and the last chain_hash."""

    number: int
    chain_hash: str | None


@dataclass(frozen=True)
class Anchor:
    """What an anchor says."""

    # The name of the machine on which it was made.
    site: str
    made_at: str
    public_key: str
    acts: AnchoredActs
    # By workspace and session.
    chains: Mapping[tuple[str, str], AnchoredChain]
    # The bytes that the signature seals, and the signature.
    body: bytes
    signature: bytes


@dataclass(frozen=True)
class AnchorReport:
    """An anchor that was made, and where it is."""

    file: str
    made_at: str
    conversations: int
    messages: int
    acts: int
    acts_hash: str | None
    public_key: str
    sha256: str


@dataclass(frozen=True)
class AnchorFile:
    """An anchor in the directory of anchors."""

    file: str
    made_at: datetime
    bytes: int


@dataclass(frozen=True)
class AnchorFinding:
    """One chain, or the signature, that is not as the anchor says."""

    code: str
    id: str
    detail: str


@dataclass(frozen=True)
class AnchorVerdict:
    """What comparing every chain with an anchor came to. All findings are counted, and the first are listed.

    Without `key_is_trusted` the signature was checked with the key in the anchor itself, which anybody can put there.
    """

    source: str
    site: str
    made_at: str
    public_key: str
    key_is_trusted: bool
    conversations: int
    messages: int
    acts: int
    # Conversations in the database that the anchor does not name: it proves nothing of them.
    unnamed_conversations: int
    is_clean: bool
    finding_count: int = 0
    findings: tuple[AnchorFinding, ...] = ()


@dataclass(frozen=True)
class PublicKey:
    """The key that anchors are verified with, in hexadecimal digits and as PEM."""

    public_key: str
    pem: str
    # Where the private key is kept.
    key_file: str
