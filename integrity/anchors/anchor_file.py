"""Serialize and parse anchors; functions only, without I/O.

Each anchor has exactly one valid form: JSON Lines in ASCII, without spaces, with the members in the order below, and
with a line feed after each line. There is one conversation line for each conversation:

    {"type":"anchor","format":"lcm-anchor","version":1,"site":...,"made_at":...,"public_key":...}
    {"type":"conversation","workspace":...,"session_id":...,"created_at":...,"messages":...,"chain_head":...}
    {"type":"audit","number":...,"chain_hash":...}
    {"type":"signature","signature":...}

The signature is Ed25519 (RFC 8032) over the bytes of all lines before it, line feeds included. docs/ledger.md specifies
the format for other implementations.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, ConfigDict, Field, NonNegativeInt, ValidationError
from pydantic.dataclasses import dataclass

from conversations.errors import Invalid
from conversations.ledger.lines import as_moment

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_STRICT = ConfigDict(strict=True, extra="forbid")

Hash = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
Signature = Annotated[str, Field(pattern="^[0-9a-f]{128}$")]

L = TypeVar("L")


def _moment(text: str) -> str:
    as_moment(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class AnchorHeader:
    """Who made an anchor, when, and with which key."""

    type: Literal["anchor"] = "anchor"
    format: Literal["lcm-anchor"] = "lcm-anchor"
    version: Literal[1] = 1
    # The hostname of the machine.
    site: str
    made_at: Moment
    public_key: Hash


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class AnchoredChain:
    """A conversation's chain: its length and last chain_hash (None without messages)."""

    type: Literal["conversation"] = "conversation"
    workspace: str
    session_id: str
    created_at: Moment
    messages: NonNegativeInt
    chain_head: Hash | None

    def __post_init__(self) -> None:
        _require_head(self.messages, self.chain_head)

    def difference(self, *, created_at: str, messages: int, chain_hash: str | None) -> str:
        """Describe how a conversation differs, or return an empty string.

        `chain_hash` is that of the last anchored message, or None if it is missing. Newer messages are no difference.
        """
        if created_at != self.created_at:
            return f"was created at {self.created_at}, not at {created_at}"
        if self.messages and chain_hash is None:
            return f"has {messages} messages, without the anchored number {self.messages}"
        if self.messages and chain_hash != self.chain_head:
            return f"differs from the anchored chain_hash at message {self.messages}"
        return ""


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class AnchoredActs:
    """The audit log's chain: its number of entries and its last chain_hash."""

    type: Literal["audit"] = "audit"
    number: NonNegativeInt
    chain_hash: Hash | None

    def __post_init__(self) -> None:
        _require_head(self.number, self.chain_hash)


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class _Signed:
    type: Literal["signature"] = "signature"
    signature: Signature


@dataclasses.dataclass(frozen=True)
class Anchor:
    """A parsed anchor, with the signed bytes and the signature."""

    header: AnchorHeader
    # The keys are a workspace and a session id.
    chains: Mapping[tuple[str, str], AnchoredChain]
    acts: AnchoredActs
    body: bytes
    signature: bytes


def body_of(header: AnchorHeader, chains: Iterable[AnchoredChain], acts: AnchoredActs) -> bytes:
    """Serialize all lines of an anchor except the signature."""
    return b"".join(map(_line, [header, *chains, acts]))


def with_signature(body: bytes, signature: bytes) -> bytes:
    """Append the signature to the body."""
    return body + _line(_Signed(signature=signature.hex()))


def parse(content: bytes, *, name: str) -> Anchor:
    """Parse an anchor without checking its signature; raises Invalid if malformed."""
    lines = content.splitlines(keepends=True)
    try:
        if len(lines) < 3:
            raise ValueError("it has fewer than three lines")
        first, *middle, acts, last = lines
        header = _parse_line(first, AnchorHeader)
        chains: dict[tuple[str, str], AnchoredChain] = {}
        for chain in (_parse_line(line, AnchoredChain) for line in middle):
            if chains.setdefault((chain.workspace, chain.session_id), chain) is not chain:
                raise ValueError("it names a conversation twice")
        return Anchor(
            header=header,
            chains=chains,
            acts=_parse_line(acts, AnchoredActs),
            body=b"".join(lines[:-1]),
            signature=bytes.fromhex(_parse_line(last, _Signed).signature),
        )
    except (ValueError, RecursionError) as wrong:
        raise Invalid(f"{name} is not an anchor of LCM: {wrong}.", code="malformed_anchor") from wrong


def _line(values: Any) -> bytes:
    return _ENCODER.encode(vars(values)).encode("ascii") + b"\n"


def _parse_line(line: bytes, kind: type[L]) -> L:
    values = json.loads(line.decode("ascii"))
    try:
        found = kind(**values) if isinstance(values, dict) else None
    except ValidationError as wrong:
        first = wrong.errors()[0]
        raise ValueError(f"the member {'.'.join(map(str, first['loc']))} of a line: {first['msg']}") from wrong
    if found is None or _line(found) != line:
        raise ValueError("a line is not one JSON object in canonical form")
    return found


def _require_head(number: int, chain_hash: str | None) -> None:
    if (chain_hash is None) != (number == 0):
        raise ValueError("the head of a chain contradicts its number")
