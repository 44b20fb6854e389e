"""Circuit breaker and spend guard of each model, shared by all workers.

The state of an endpoint is one row of `model_endpoints`, changed by one statement before a call and one after it. Each
is a transaction of its own, and that is asserted. So the cost of a call stays counted even if its result is rolled
back, and no lock is held during a call: workers wait for each other's statements at most, and never in a circle, as
each takes this one lock only. It needs callers without an open transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from compaction.llm.client import ModelClient
from compaction.llm.configuration import MODELS, ModelsPolicy
from compaction.llm.leaks import Secrets
from compaction.llm.types import BreakerOpen, CallOutcome, SpendExhausted, Usage
from compaction.models import ModelEndpoint
from conversations import sql

logger = structlog.get_logger(__name__)

# Faults of the endpoint, which the next call would most likely meet, too.
FAULTS = frozenset({CallOutcome.UNREACHABLE, CallOutcome.RATE_LIMITED, CallOutcome.DENIED, CallOutcome.LEAKED})
# The endpoint is there and does its work: a prompt that is too long is the caller's.
SIGNS_OF_LIFE = frozenset({CallOutcome.ANSWERED, CallOutcome.CONTEXT_LENGTH})
# The endpoint is there, and does not answer this request: another may be answered. A content filter may withhold the
# summary of one chunk for ever, and must not delay all others.
NOTHING_TO_THIS = frozenset({CallOutcome.REFUSED, CallOutcome.BAD_ANSWER})

# A pause grows to at most so many times the first one.
MOST_PAUSES = 4
# Who finds out whether the endpoint answers has the time of a call and this; then another may.
PROBE_MARGIN_SECONDS = 10

_STATEMENTS = sql.load("compaction/models.sql")


@dataclass(frozen=True)
class Guard:
    """The hooks of a ModelClient, before and after each call to one endpoint.

    `before_call` and `after_call` are one statement each; a call that is withheld takes a second one, to say why.
    """

    name: str
    policy: ModelsPolicy
    now: Callable[[], datetime] = timezone.now
    # The key of its row, where several endpoints go by one name.
    row: str = ""

    def before_call(self) -> None:
        """Count the next call; BreakerOpen or SpendExhausted if it may not be made.

        The error says when: `retry_at`.
        """
        now = self.now()
        values = _values(self.policy, now) | {"name": self._key}
        if _changed(_STATEMENTS["admit_call"], values):
            return
        [(may_pass, closed_until, may_spend, window_started_at)] = sql.rows(_STATEMENTS["why_withheld"], values)
        if may_pass and not may_spend:
            retry_at = window_started_at + timedelta(seconds=self.policy.spend_window_seconds)
            raise SpendExhausted(f"the calls or tokens for {self.name!r} are spent for now", retry_at=retry_at)
        # By now another worker may have closed it.
        raise BreakerOpen(f"{self.name!r} has failed too often and is left alone for now", retry_at=closed_until or now)

    def after_call(self, outcome: CallOutcome, usage: Usage) -> None:
        """Record how the call ended and its cost; a fault may open the breaker."""
        now = self.now()
        values = _values(self.policy, now) | {
            "name": self._key,
            "tokens_in": usage.tokens_in,
            "tokens_out": usage.tokens_out,
            "reason": outcome.value,
            "is_fault": outcome in FAULTS,
            "is_there": outcome in NOTHING_TO_THIS,
            "most_failures": self.policy.breaker_failures,
            "pause": self.policy.breaker_pause_seconds,
            "most_pauses": MOST_PAUSES,
        }
        if outcome in SIGNS_OF_LIFE:
            _changed(_STATEMENTS["record_success"], values)
            return
        [open_until] = _changed(_STATEMENTS["record_failure"], values) or [None]
        # Less than a whole pause is left of one that had begun before.
        if open_until and open_until >= now + timedelta(seconds=self.policy.breaker_pause_seconds):
            logger.warning("model_left_alone", model=self.name, reason=outcome.value, until=open_until.isoformat())

    def is_denied(self) -> bool:
        """Whether the endpoint has rejected calls since its last success."""
        denied = ModelEndpoint.objects.filter(name=self._key, last_failure=CallOutcome.DENIED)
        return denied.exclude(last_success_at__gte=F("last_failure_at")).exists()

    def takes_temperature(self) -> bool:
        """Whether the model has not refused a temperature so far."""
        refusing = ModelEndpoint.objects.filter(name=self._key, temperature_refused_by=self.policy.model(self.name))
        return not refusing.exists()

    def remember_temperature_refused(self) -> None:
        """Record that the configured model refuses a temperature."""
        model = self.policy.model(self.name)
        _changed(_STATEMENTS["refuse_temperature"], {"name": self._key, "model": model})
        logger.info("model_refuses_temperature", model=self.name, model_name=model)

    @property
    def _key(self) -> str:
        return self.row or self.name


def callable_models(
    chain: Iterable[str], *, policy: ModelsPolicy | None = None, now: Callable[[], datetime] = timezone.now
) -> dict[str, bool]:
    """The models of the chain that may be called now, in its order.

    True says that the breaker is closed; false, that its pause is over and one call may find out whether it can be.
    """
    policy = policy or ModelsPolicy.from_settings()
    names = [name for name in chain if name in MODELS and not policy.missing(name)]
    if not names:
        return {}
    return dict(sql.rows(_STATEMENTS["callable_models"], _values(policy, now()) | {"names": names}))


def guarded_client(
    name: str, *, policy: ModelsPolicy | None = None, now: Callable[[], datetime] = timezone.now, **options: Any
) -> ModelClient:
    """A client of this model behind its guard; Misconfigured if not ready."""
    policy = policy or ModelsPolicy.from_settings()
    guard = Guard(name=name, policy=policy, now=now)
    return ModelClient(
        endpoint=policy.endpoint(name),
        before_call=guard.before_call,
        after_call=guard.after_call,
        takes_temperature=guard.takes_temperature,
        on_temperature_refused=guard.remember_temperature_refused,
        secrets=Secrets({**settings.SECRETS, **policy.keys()}),
        **options,
    )


def _values(policy: ModelsPolicy, now: datetime) -> dict[str, Any]:
    """The values of all statements, by the caller's clock and not the database's."""
    return {
        "now": now,
        "probe_ends": now + timedelta(seconds=policy.model_timeout_seconds + PROBE_MARGIN_SECONDS),
        "window_began": now - timedelta(seconds=policy.spend_window_seconds),
        "max_calls": policy.spend_max_calls,
        "max_tokens": policy.spend_max_tokens,
    }


def _changed(statement: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
    """The row that was changed; None if none was."""
    # Durable: refused where a transaction is open already.
    with transaction.atomic(durable=True):
        return next(iter(sql.rows(statement, values)), None)
