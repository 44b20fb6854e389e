"""The Ed25519 key of a site, which signs anchors.

`cryptography` is imported in functions: it loads slowly, and few commands and tasks sign.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from conversations.errors import Invalid
from conversations.policy import create_secret_file
from integrity.anchors.anchor_file import Anchor

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_HEX = re.compile("[0-9a-fA-F]{64}")


def load_private_key(file: Path, *, may_create: bool) -> Ed25519PrivateKey:
    """Read the private key; create a missing file if `may_create`."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        if may_create and not file.exists():
            _make(file)
        key = load_pem_private_key(file.read_bytes(), password=None)
    except OSError as refusal:
        raise Invalid(f"The anchor key {file} cannot be used: {refusal.strerror}.", code="unusable_key") from refusal
    except (ValueError, TypeError) as refusal:
        raise Invalid(f"{file} is not an unencrypted private key in PEM.", code="unusable_key") from refusal
    if not isinstance(key, Ed25519PrivateKey):
        raise Invalid(f"The key in {file} is not an Ed25519 key.", code="unusable_key")
    return key


def public_hex(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes_raw().hex()


def public_pem(key: Ed25519PrivateKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode("ascii")


def is_signed_by(anchor: Anchor, trusted: str | None) -> bool:
    """Whether the trusted key signed the anchor.

    If `trusted` is None, any key may have signed: the signature must match the key that the anchor itself names.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    named = anchor.header.public_key
    try:
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(named)).verify(anchor.signature, anchor.body)
    except (InvalidSignature, ValueError):
        return False
    return trusted in (None, named)


def read_public_key(given: str) -> str:
    """Return a public key as hex digits; `given` has the digits or a file's path."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    if _HEX.fullmatch(given):
        return given.lower()
    try:
        content = Path(given).read_bytes()
    except (OSError, ValueError) as refusal:
        why = getattr(refusal, "strerror", None) or refusal
        raise Invalid(
            f"{given[:200]} is neither 64 hexadecimal digits nor a file: {why}.", code="unusable_key"
        ) from refusal
    text = content.decode("ascii", "replace").strip()
    if _HEX.fullmatch(text):
        return text.lower()
    try:
        key = load_pem_public_key(content)
    except (ValueError, TypeError) as refusal:
        raise Invalid(f"{given[:200]} holds no public key.", code="unusable_key") from refusal
    if not isinstance(key, Ed25519PublicKey):
        raise Invalid(f"The key in {given[:200]} is not an Ed25519 key.", code="unusable_key")
    return key.public_bytes_raw().hex()


def _make(file: Path) -> None:
    """Create the key file atomically; keep a key that another process created."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    pem = Ed25519PrivateKey.generate().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    file.parent.mkdir(parents=True, exist_ok=True)
    create_secret_file(file, pem.decode("ascii"))
