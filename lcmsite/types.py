"""The records of the site: keys and people, and what they may do."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.utils import timezone


class KeyScope(StrEnum):
    """What a key may do; each includes the ones above it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class Role(StrEnum):
    """What a person is in a workspace; each may do what the ones above it may."""

    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def scope(self) -> KeyScope:
        """What a key would need to do the same."""
        return {Role.READER: KeyScope.READ, Role.OPERATOR: KeyScope.WRITE, Role.ADMIN: KeyScope.ADMIN}[self]


@dataclass(frozen=True)
class WorkspaceRecord:
    workspace_id: int
    name: str
    created_at: datetime


@dataclass(frozen=True)
class MemberRecord:
    """A person in a workspace."""

    username: str
    workspace: str
    role: Role
    last_login: datetime | None = None
    is_active: bool = True


@dataclass(frozen=True)
class NewPassword:
    """A person's new password, which is shown this once."""

    username: str
    password: str


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

    @property
    def state(self) -> str:
        if self.revoked_at:
            return "revoked"
        return "expired" if self.expires_at and self.expires_at <= timezone.now() else "active"


@dataclass(frozen=True)
class IssuedKey:
    """A new key, with its text, which is shown this once."""

    key: str
    record: ApiKeyRecord
