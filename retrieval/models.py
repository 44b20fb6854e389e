"""Tables of retrieval: receipts of assemblies, grants, map runs and embedders."""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q, Value
from django.db.models.functions import Now

from conversations.models import Conversation, Workspace
from retrieval.map.models import MapEvent as MapEvent
from retrieval.map.models import MapItem as MapItem
from retrieval.map.models import MapRun as MapRun
from retrieval.semantic.models import EmbeddedConversation as EmbeddedConversation
from retrieval.semantic.models import Embedder as Embedder
from retrieval.semantic.models import RefusedPassage as RefusedPassage


class AssemblyReceipt(models.Model):
    """A record of one assembly: what the context contains and leaves out, and why."""

    receipt_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="assembly_receipts")
    created_at = models.DateTimeField(db_default=Now())
    # The totals of the context, and the parameters of the assembly.
    figures = models.JSONField()
    # For each item that was considered, a list with the fields of `ReceiptLine` in order.
    lines = models.JSONField()

    class Meta:
        db_table = "assembly_receipts"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "-created_at"], name="assembly_receipts_conv_idx"),
        ]

    def __str__(self) -> str:
        return self.receipt_id


class Grant(models.Model):
    """Temporary read access to some summaries and messages, up to a token limit."""

    grant_id = models.TextField(primary_key=True)
    workspace = models.ForeignKey(Workspace, models.CASCADE, related_name="grants")
    question = models.TextField()
    item_ids = ArrayField(models.TextField())
    depth = models.IntegerField()
    token_cap = models.IntegerField()
    # The number of tokens that were read, plus the tokens reserved for reads in progress.
    tokens_used = models.IntegerField(default=0, db_default=0)
    reads = models.IntegerField(default=0, db_default=0)
    created_at = models.DateTimeField(db_default=Now())
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    # The number of refused reads for each error code.
    refusals = models.JSONField(default=dict, db_default=Value("{}", models.JSONField()))

    class Meta:
        db_table = "grants"
        indexes: ClassVar = [
            models.Index(fields=["workspace", "-created_at"], name="grants_workspace_idx"),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(tokens_used__gte=0, tokens_used__lte=F("token_cap")), name="grants_are_never_exceeded"
            ),
            models.CheckConstraint(condition=Q(depth__gte=1, depth__lte=3), name="grants_go_three_levels_down_at_most"),
        ]

    def __str__(self) -> str:
        return self.grant_id
