"""Records of the site: workspaces, members, API keys, and their rights."""

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
    """A person's role in a workspace; each includes the rights of those above it."""

    READER = "reader"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def scope(self) -> KeyScope:
        """The API key scope with the same rights."""
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
    """A person's new password, which is shown only once."""

    username: str
    password: str


@dataclass(frozen=True)
class ApiKeyRecord:
    """An API key without its secret text."""

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
    """A new API key with its secret text, which is shown only once."""

    key: str
    record: ApiKeyRecord
