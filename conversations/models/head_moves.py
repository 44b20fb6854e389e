"""The moves of conversations' heads."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from conversations.models.conversation import Conversation


class HeadMove(models.Model):
    """A move of the head: the message appended at `at_seq` follows `head_seq`.

    The database refuses to change or remove the row, and refuses gaps in `number`.
    """

    head_move_id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="head_moves")
    number = models.IntegerField()
    at_seq = models.BigIntegerField()
    head_seq = models.BigIntegerField()
    recorded_at = models.DateTimeField(db_default=Now())
    reason = models.TextField(default="")

    class Meta:
        db_table = "head_moves"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "number"], name="head_moves_are_numbered"),
            models.CheckConstraint(
                condition=Q(number__gte=1, head_seq__gte=0, head_seq__lt=F("at_seq")),
                name="head_moves_lead_to_a_message",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.number}: to {self.head_seq}"
