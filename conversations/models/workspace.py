from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now


class Workspace(models.Model):
    """Whose data it is: every conversation belongs to one workspace, and no query crosses its border."""

    workspace_id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True)
    created_at = models.DateTimeField(db_default=Now())
    cold_after_days = models.IntegerField(null=True)

    class Meta:
        db_table = "workspaces"
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(cold_after_days__gte=1), name="workspaces_wait_at_least_a_day"),
        ]

    def __str__(self) -> str:
        return self.name
