"""The records of the site: keys, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class KeyScope(StrEnum):
    """What a key may do; each includes the ones above it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


@dataclass(frozen=True)
class ApiKeyRecord:
    """What may be shown of a key: not the key."""

    api_key_id: int
    workspace: str
    name: str
    prefix: str
    scopes: tuple[KeyScope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True)
class IssuedKey:
    """A new key, with its text, which is shown this once."""

    key: str
    record: ApiKeyRecord
