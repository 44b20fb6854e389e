"""The site's own table: who may come in."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from conversations.models import Workspace
from lcmsite.types import ApiKeyRecord, KeyScope


class ApiKey(models.Model):
    """One key to one workspace. The key itself is not here, only what recognizes it."""

    api_key_id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="api_keys")
    name = models.TextField()
    prefix = models.TextField(db_index=True)
    key_hash = models.BinaryField(unique=True)
    scopes = ArrayField(models.TextField(choices=[(scope.value, scope.value) for scope in KeyScope]))
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "api_keys"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(scopes__contained_by=[scope.value for scope in KeyScope], scopes__len__gte=1),
                name="api_keys_have_scopes_that_there_are",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def as_record(self) -> ApiKeyRecord:
        return ApiKeyRecord(
            api_key_id=self.api_key_id,
            workspace=self.workspace.name,
            name=self.name,
            prefix=self.prefix,
            scopes=tuple(KeyScope(scope) for scope in self.scopes),
            created_at=self.created_at,
            expires_at=self.expires_at,
            revoked_at=self.revoked_at,
            last_used_at=self.last_used_at,
        )
