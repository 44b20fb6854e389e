"""Show the language models to the site administrator, and reset their breakers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from compaction.llm.configuration import MODELS, ModelsPolicy, cost_of
from compaction.llm.embeddings import EMBEDDER, EmbedderPolicy
from compaction.llm.types import BreakerState, EndpointRecord, Protocol
from compaction.models import ModelEndpoint
from conversations.audit import Act, AuditLog
from conversations.errors import NotFound
from conversations.models.columns import record_of
from conversations.scope import EVERYTHING, Scope

_RESET = (
    "consecutive_failures", "open_until", "probing_until", "temperature_refused_by",
    "window_started_at", "window_calls", "window_tokens",
)  # fmt: skip


@dataclass(frozen=True)
class ModelEndpoints:
    """Shows and resets the state of the language models.

    All workers share the models and their state. They belong to the site, not to a workspace.
    """

    policy: ModelsPolicy
    scope: Scope = EVERYTHING
    now: Callable[[], datetime] = timezone.now
    embedder: EmbedderPolicy = EmbedderPolicy()

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> ModelEndpoints:
        return cls(policy=ModelsPolicy.from_settings(), scope=scope, embedder=EmbedderPolicy.from_settings())

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all models, including the embedder if it is configured."""
        return (*MODELS, EMBEDDER) if self.embedder.is_configured else MODELS

    def list_endpoints(self) -> list[EndpointRecord]:
        """List the language models, each with its circuit breaker, calls and cost."""
        rows = ModelEndpoint.objects.in_bulk(map(self._key, self.names))
        return [self._record(name, rows.get(self._key(name)) or self._untried(name)) for name in self.names]

    def reset_endpoint(self, *, name: str) -> EndpointRecord:
        """Close a model's circuit breaker and reset its spending window.

        If LCM had stopped sending the model a temperature, it sends one again. The totals of calls and cost are kept.
        Raises NotFound for an unknown name.
        """
        if name not in self.names:
            raise NotFound(f"There is no model {name[:80]!r}; the models are {', '.join(self.names)}.")
        with transaction.atomic():
            # One statement, like all that change such a row. It inserts the row of a model that was never called.
            ModelEndpoint.objects.bulk_create(
                [self._untried(name)], update_conflicts=True, unique_fields=["name"], update_fields=_RESET
            )
            AuditLog(self.scope).record(Act.RESET_ENDPOINT, target=name)
        return self._record(name, ModelEndpoint.objects.get(name=self._key(name)))

    def _key(self, name: str) -> str:
        """Return the primary key of a model's row; each embedder has its own row."""
        return self.embedder.endpoint_key if name == EMBEDDER else name

    def _untried(self, name: str) -> ModelEndpoint:
        return ModelEndpoint(name=self._key(name), window_started_at=self.now())

    def _record(self, name: str, row: ModelEndpoint) -> EndpointRecord:
        window_ends_at = row.window_started_at + timedelta(seconds=self.policy.spend_window_seconds)
        is_running = window_ends_at > self.now() and bool(row.window_calls or row.window_tokens)
        return record_of(
            EndpointRecord,
            row,
            name=name,
            # Only the host: the rest of the URL may contain a secret.
            host=_host_of(self._url(name)),
            state=self._state(row),
            **self._settings(name, row),
            window_ends_at=window_ends_at if is_running else None,
            window_calls=row.window_calls if is_running else 0,
            window_calls_limit=self.policy.spend_max_calls or None,
            window_tokens=row.window_tokens if is_running else 0,
            window_tokens_limit=self.policy.spend_max_tokens or None,
        )

    def _url(self, name: str) -> str:
        return self.embedder.embedder_url if name == EMBEDDER else self.policy.url(name)

    def _settings(self, name: str, row: ModelEndpoint) -> dict[str, Any]:
        """Return a model's configuration, and its cost at the configured prices."""
        if name == EMBEDDER:
            found: dict[str, Any] = {
                "protocol": "embeddings",
                "model": self.embedder.embedder_model,
                "is_configured": self.embedder.is_configured,
            }
            prices = self.embedder.prices
        else:
            found = {
                "protocol": Protocol(name).value,
                "model": self.policy.model(name),
                "is_configured": not self.policy.missing(name),
            }
            prices = self.policy.prices(name)
        refuses = row.temperature_refused_by == (found["model"] or None)
        return {**found, "refuses_temperature": refuses, "cost": cost_of(row.tokens_in, row.tokens_out, prices=prices)}

    def _state(self, row: ModelEndpoint) -> BreakerState:
        if row.open_until is None:
            return BreakerState.CLOSED
        is_probing = row.probing_until is not None and row.probing_until > self.now()
        return BreakerState.PROBING if is_probing else BreakerState.OPEN


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).hostname or ""
    except ValueError:
        return ""
