"""The state that all workers share about each language model."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ModelEndpoint(models.Model):
    """The circuit breaker and spend guard of one model.

    No key, prompt or answer is stored here.
    """

    name = models.TextField(primary_key=True)
    # The breaker: open until the moment named; then one call at a time finds out.
    consecutive_failures = models.IntegerField(default=0, db_default=0)
    open_until = models.DateTimeField(null=True)
    probing_until = models.DateTimeField(null=True)
    last_failure = models.TextField(default="", db_default="")
    last_failure_at = models.DateTimeField(null=True)
    last_success_at = models.DateTimeField(null=True)
    # The spend guard: calls and tokens since the window began.
    window_started_at = models.DateTimeField(db_default=Now())
    window_calls = models.IntegerField(default=0, db_default=0)
    window_tokens = models.BigIntegerField(default=0, db_default=0)
    # Since the endpoint was first used.
    calls = models.BigIntegerField(default=0, db_default=0)
    failures = models.BigIntegerField(default=0, db_default=0)
    tokens_in = models.BigIntegerField(default=0, db_default=0)
    tokens_out = models.BigIntegerField(default=0, db_default=0)

    class Meta:
        db_table = "model_endpoints"

    def __str__(self) -> str:
        return self.name
