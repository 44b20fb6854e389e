"""The journal: raw entries from the transcripts of agent programs (hosts)."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from conversations.models.conversation import Conversation


class JournalEntry(models.Model):
    """One entry of a host, not interpreted by LCM. Only an erasure can change it."""

    journal_entry_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="journal_entries")
    # The host's file that the entry comes from; "" for the session's own file.
    subpath = models.TextField(default="")
    position = models.BigIntegerField()
    uuid = models.TextField(null=True)  # noqa: DJ001 (an entry without one is not the same as another)
    # The JSON that `journal_text` wrote; None after an erasure. A text column, so that `row_seal` need not parse it.
    entry = models.TextField(null=True)  # noqa: DJ001
    entry_hash = models.BinaryField()
    recorded_at = models.DateTimeField(db_default=Now())
    erased_by = models.ForeignKey("conversations.AuditEntry", models.RESTRICT, null=True, related_name="+")

    class Meta:
        db_table = "journal_entries"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["conversation", "subpath", "position"], name="journal_entries_have_a_place_each"
            ),
            models.UniqueConstraint(
                fields=["conversation", "subpath", "uuid"],
                condition=Q(uuid__isnull=False),
                name="journal_entries_are_kept_once",
            ),
            models.CheckConstraint(condition=Q(position__gte=1), name="journal_entries_are_numbered_from_one"),
            models.CheckConstraint(
                condition=Q(entry__isnull=False) | Q(erased_by__isnull=False), name="journal_entries_hold_something"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.subpath}#{self.position}"
