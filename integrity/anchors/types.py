"""Records of anchors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True)
class AnchoredChain:
    """A conversation's chain in an anchor: its length and its last chain_hash."""

    workspace: str
    session_id: str
    created_at: str
    messages: int
    # None without messages.
    chain_head: str | None

    def difference(self, *, created_at: str, messages: int, chain_hash: str | None) -> str:
        """Describe how a conversation differs; empty if it does not.

        `chain_hash` is that of its message with the anchored number, None without one. The conversation may have grown.
        """
        if created_at != self.created_at:
            return f"was created at {self.created_at}, not at {created_at}"
        if self.messages and chain_hash is None:
            return f"has {messages} messages, without the anchored number {self.messages}"
        if self.messages and chain_hash != self.chain_head:
            return f"differs from the anchored chain_hash at message {self.messages}"
        return ""


@dataclass(frozen=True)
class AnchoredActs:
    """The audit log's chain in an anchor: its number of acts and its last chain_hash."""

    number: int
    chain_hash: str | None


@dataclass(frozen=True)
class Anchor:
    """A parsed anchor."""

    # The host name of the machine that made it.
    site: str
    made_at: str
    public_key: str
    acts: AnchoredActs
    # By workspace and session.
    chains: Mapping[tuple[str, str], AnchoredChain]
    # The signed bytes, and the signature.
    body: bytes
    signature: bytes


@dataclass(frozen=True)
class AnchorReport:
    """A new anchor and its file."""

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
    """A file in the anchor directory."""

    file: str
    made_at: datetime
    bytes: int


@dataclass(frozen=True)
class AnchorFinding:
    """One chain, or the signature, that differs from the anchor."""

    code: str
    id: str
    detail: str


@dataclass(frozen=True)
class AnchorVerdict:
    """The result of comparing every chain with an anchor.

    All findings are counted, the first are listed. Without `key_is_trusted` the signature was checked with the key in
    the anchor itself, which a forger can replace.
    """

    source: str
    site: str
    made_at: str
    public_key: str
    key_is_trusted: bool
    conversations: int
    messages: int
    acts: int
    # Conversations in the database that the anchor does not cover.
    unnamed_conversations: int
    is_clean: bool
    finding_count: int = 0
    findings: tuple[AnchorFinding, ...] = ()


@dataclass(frozen=True)
class PublicKey:
    """The public key of anchors, as hexadecimal digits and as PEM."""

    public_key: str
    pem: str
    # The file of the private key.
    key_file: str
