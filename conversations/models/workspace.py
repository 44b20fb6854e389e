from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class Workspace(models.Model):
    """Whose data it is: every conversation belongs to one workspace, and no query crosses its border."""

    workspace_id = models.BigAutoField(primary_key=True)
    name = models.TextField(unique=True)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "workspaces"

    def __str__(self) -> str:
        return self.name
