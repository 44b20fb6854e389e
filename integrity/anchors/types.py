"""Records about anchors: made, listed, verified."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
