"""The site's own tables: who may come in, and what the gateway forwarded."""

from __future__ import annotations

from typing import ClassVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from conversations.models import Conversation, Workspace
from lcmsite.types import ApiKeyRecord, KeyScope, MemberRecord, Role


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


class Membership(models.Model):
    """A user's role in a workspace; superusers are admins in all."""

    membership_id = models.BigAutoField(primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="memberships")
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="memberships")
    role = models.TextField(choices=[(role.value, role.value) for role in Role])
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "memberships"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "workspace"], name="memberships_are_one_for_each_workspace"),
            models.CheckConstraint(
                condition=Q(role__in=[role.value for role in Role]), name="memberships_have_roles_that_there_are"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} is {self.role} of {self.workspace}"

    def as_record(self) -> MemberRecord:
        return MemberRecord(
            username=self.user.get_username(),
            workspace=self.workspace.name,
            role=Role(self.role),
            last_login=self.user.last_login,
            is_active=self.user.is_active,
        )


class GatewayExchange(models.Model):
    """One request of an agent through the gateway, and what became of it.

    The words are messages of the conversation. Here is what finds them again: the hashes of the chain behind the
    request and behind the answer, and the vendor's name of the answer.
    """

    exchange_id = models.BigAutoField(primary_key=True)
    # Made by the gateway: an exchange that is recorded again, after an outage, is the same one.
    exchange_key = models.UUIDField(unique=True)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="+")
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="+")
    surface = models.TextField()
    # What a host wanted beside the conversation; "" for a turn of it.
    side = models.TextField(default="")
    model = models.TextField(default="")
    request_chain = models.BinaryField()
    request_seq = models.BigIntegerField()
    answer_chain = models.BinaryField(null=True)
    answer_seq = models.BigIntegerField(null=True)
    response_id = models.TextField(null=True)  # noqa: DJ001 (absent is not empty)
    # The vendor's HTTP status; null while the answer is on its way, and where none came.
    status = models.SmallIntegerField(null=True)
    is_complete = models.BooleanField(default=False)
    # The vendor's word for what went wrong, never its sentence.
    error = models.TextField(default="")
    tokens_in = models.BigIntegerField(null=True)
    tokens_out = models.BigIntegerField(null=True)
    milliseconds = models.IntegerField(null=True)
    received_at = models.DateTimeField()

    class Meta:
        db_table = "gateway_exchanges"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "request_chain"], name="gateway_request_chain_idx"),
            models.Index(fields=["workspace", "answer_chain"], name="gateway_answer_chain_idx"),
            models.Index(fields=["workspace", "response_id"], name="gateway_response_idx"),
        ]

    def __str__(self) -> str:
        return f"exchange {self.exchange_key}"
