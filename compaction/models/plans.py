"""What a compaction would do, kept so that exactly this can be done."""

from __future__ import annotations

from typing import ClassVar, Self

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from conversations.models import Conversation


class CompactionPlanQuerySet(models.QuerySet):
    def waiting(self) -> Self:
        """Those that a worker is to carry out and has not begun."""
        return self.filter(requested_at__isnull=False, executed_at__isnull=True, refusal="")


class CompactionPlan(models.Model):
    """A dry run: its steps in order, and the context that they were made for."""

    plan_id = models.TextField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="compaction_plans")
    created_at = models.DateTimeField(db_default=Now())
    # What the context was: its last seq, its tokens, and the hash of its items.
    last_seq = models.BigIntegerField()
    tokens_before = models.BigIntegerField()
    tokens_expected = models.BigIntegerField()
    context_hash = models.TextField()
    summarizer = models.TextField()
    policy = models.JSONField()
    steps = models.JSONField()
    # How many messages and items the context had and should have, and what the summaries should take.
    figures = models.JSONField()
    # When a worker was requested to carry it out, and why that was refused: the row is the job.
    requested_at = models.DateTimeField(null=True)
    refusal = models.TextField(default="", db_default="")
    executed_at = models.DateTimeField(null=True)
    run = models.ForeignKey("compaction.CompactionRun", models.SET_NULL, null=True, related_name="plans")

    objects = CompactionPlanQuerySet.as_manager()

    class Meta:
        db_table = "compaction_plans"
        indexes: ClassVar = [
            models.Index(fields=["conversation", "-created_at"], name="compaction_plans_conv_idx"),
            models.Index(
                fields=["requested_at"],
                condition=Q(requested_at__isnull=False, executed_at__isnull=True, refusal=""),
                name="compaction_plans_waiting_idx",
            ),
        ]
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(tokens_expected__gte=0, tokens_expected__lte=F("tokens_before")),
                name="compaction_plans_add_up",
            ),
        ]

    def __str__(self) -> str:
        return self.plan_id
