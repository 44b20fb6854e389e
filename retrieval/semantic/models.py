"""The tables of semantic search: embedders, and their progress by conversation.

Each embedder has a separate table for its vectors (`vector_table.py`), which is created when the embedder is set up.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from conversations.models import Conversation, Message
from conversations.work.queue import WorkState
from retrieval.semantic.types import EmbedderState


class Embedder(models.Model):
    """An embedding model, and the state of its vectors. It stores no API key."""

    embedder_id = models.BigAutoField(primary_key=True)
    url = models.TextField()
    model = models.TextField()
    # The model that embeds questions.
    question_model = models.TextField()
    dimension = models.IntegerField()
    state = models.TextField(
        choices=[(state.value, state.value) for state in EmbedderState], default=EmbedderState.BUILDING
    )
    created_at = models.DateTimeField(db_default=Now())
    switched_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "embedders"
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["state"], condition=Q(state__in=["building", "current"]), name="embedders_build_and_serve_once"
            ),
            models.UniqueConstraint(fields=["url", "model", "question_model"], name="embedders_are_listed_once"),
            models.CheckConstraint(condition=Q(dimension__gte=1), name="embedders_have_a_dimension"),
        ]

    def __str__(self) -> str:
        return f"{self.model} ({self.state})"

    @classmethod
    def current(cls) -> Embedder | None:
        """The embedder that searches use, if there is one."""
        return cls.objects.filter(state=EmbedderState.CURRENT).first()


class EmbeddedConversation(models.Model):
    """The progress of an embedder in a conversation; also a job of the work queue."""

    job_id = models.BigAutoField(primary_key=True)
    embedder = models.ForeignKey(Embedder, models.CASCADE, related_name="conversations")
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="+")
    # All messages up to this seq are embedded, or have no text to embed.
    upto_seq = models.BigIntegerField(default=0, db_default=0)
    passages = models.BigIntegerField(default=0, db_default=0)
    passages_refused = models.BigIntegerField(default=0, db_default=0)
    state = models.TextField(
        choices=[(state.value, state.value) for state in WorkState],
        default=WorkState.QUEUED,
        db_default=WorkState.QUEUED.value,
    )
    run_after = models.DateTimeField(db_default=Now())
    leased_until = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    fence = models.IntegerField(default=0, db_default=0)
    attempts = models.IntegerField(default=0, db_default=0)
    last_error = models.TextField(default="", db_default="")

    class Meta:
        db_table = "embedded_conversations"
        indexes: ClassVar = [
            models.Index(
                fields=["run_after"],
                condition=Q(state__in=["queued", "leased"]),
                name="embedded_conv_open_idx",
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["conversation", "embedder"], name="embedded_conversations_are_listed_once"),
        ]

    def __str__(self) -> str:
        return f"conversation {self.conversation_id} up to {self.upto_seq}"


class RefusedPassage(models.Model):
    """A passage without a vector, and the reason; search by words still finds it."""

    refusal_id = models.BigAutoField(primary_key=True)
    embedder = models.ForeignKey(Embedder, models.CASCADE, related_name="refused_passages")
    message = models.ForeignKey(Message, models.CASCADE, related_name="+")
    passage = models.IntegerField()
    # The error of the embedder, without text of the message.
    reason = models.TextField()
    refused_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "refused_passages"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["embedder", "message", "passage"], name="refused_passages_are_listed_once"),
        ]

    def __str__(self) -> str:
        return f"passage {self.passage} of msg_{self.message_id}"
