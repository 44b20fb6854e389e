"""The file format of anchors, in one canonical form. Pure.

JSON Lines in ASCII, without blanks, members in the order below, each line ended by a line feed, and one conversation
line for each conversation:

    {"type":"anchor","format":"lcm-anchor","version":1,"site":...,"made_at":...,"public_key":...}
    {"type":"conversation","workspace":...,"session_id":...,"created_at":...,"messages":...,"chain_head":...}
    {"type":"audit","number":...,"chain_hash":...}
    {"type":"signature","signature":...}

The signature is Ed25519 (RFC 8032) over the bytes of all lines before it, line feeds included. docs/ledger.md specifies
the format for other implementations.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from conversations.errors import Invalid
from conversations.ledger.lines import as_moment
from integrity.anchors.types import Anchor, AnchoredActs, AnchoredChain

FORMAT = "lcm-anchor"
VERSION = 1

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_HASH_DIGITS = 64
_SIGNATURE_DIGITS = 128


def body_of(*, site: str, made_at: str, public_key: str, chains: Iterable[AnchoredChain], acts: AnchoredActs) -> bytes:
    """Serialize all lines of an anchor except the signature."""
    first = {"type": "anchor", "format": FORMAT, "version": VERSION}
    lines = [_line({**first, "site": site, "made_at": made_at, "public_key": public_key})]
    lines += [_line({"type": "conversation", **vars(chain)}) for chain in chains]
    lines.append(_line({"type": "audit", **vars(acts)}))
    return b"".join(lines)


def signed(body: bytes, signature: bytes) -> bytes:
    """Append the signature to the body."""
    return body + _line({"type": "signature", "signature": signature.hex()})


def parse(content: bytes, *, name: str) -> Anchor:
    """Parse an anchor without checking its signature; Invalid for a malformed file."""
    lines = content.splitlines(keepends=True)
    try:
        if len(lines) < 3:
            raise ValueError("it has fewer than three lines")
        first, *middle, acts, last = (_read(line) for line in lines)
        _require(first, "anchor", format=str, version=int, site=str, made_at=str, public_key=str)
        if (first["format"], first["version"]) != (FORMAT, VERSION):
            raise ValueError("it is of another format or version")
        as_moment(first["made_at"])
        _hex(first["public_key"], _HASH_DIGITS)
        chains: dict[tuple[str, str], AnchoredChain] = {}
        for values in middle:
            chain = _chain(values)
            if chains.setdefault((chain.workspace, chain.session_id), chain) is not chain:
                raise ValueError("it names a conversation twice")
        _require(acts, "audit", number=int, chain_hash=str | None)
        _head(acts["number"], acts["chain_hash"])
        _require(last, "signature", signature=str)
        _hex(last["signature"], _SIGNATURE_DIGITS)
    except (ValueError, RecursionError) as wrong:
        raise Invalid(f"{name} is not an anchor of LCM: {wrong}.", code="malformed_anchor") from wrong
    return Anchor(
        site=first["site"],
        made_at=first["made_at"],
        public_key=first["public_key"],
        acts=AnchoredActs(number=acts["number"], chain_hash=acts["chain_hash"]),
        chains=chains,
        body=b"".join(lines[:-1]),
        signature=bytes.fromhex(last["signature"]),
    )


def _line(values: Mapping[str, Any]) -> bytes:
    return _ENCODER.encode(values).encode("ascii") + b"\n"


def _read(line: bytes) -> dict[str, Any]:
    values = json.loads(line.decode("ascii"))
    if not isinstance(values, dict) or _line(values) != line:
        raise ValueError("a line is not one JSON object in canonical form")
    return values


def _require(values: Mapping[str, Any], kind: str, **members: Any) -> None:
    if list(values) != ["type", *members] or values["type"] != kind:
        raise ValueError(f"the members of the {kind} line are wrong")
    for member, expected in members.items():
        if not isinstance(values[member], expected) or isinstance(values[member], bool):
            raise ValueError(f"the {member} of a line has a wrong type")


def _chain(values: dict[str, Any]) -> AnchoredChain:
    _require(values, "conversation", workspace=str, session_id=str, created_at=str, messages=int, chain_head=str | None)
    as_moment(values["created_at"])
    _head(values["messages"], values["chain_head"])
    return AnchoredChain(**{name: value for name, value in values.items() if name != "type"})


def _head(number: int, chain_hash: str | None) -> None:
    if number < 0 or (chain_hash is None) != (number == 0):
        raise ValueError("the head of a chain contradicts its number")
    if chain_hash is not None:
        _hex(chain_hash, _HASH_DIGITS)


def _hex(text: str, digits: int) -> None:
    if not re.fullmatch(f"[0-9a-f]{{{digits}}}", text):
        raise ValueError(f"{text[:80]!r} is not {digits} hexadecimal digits")
