"""Circuit breaker and spend guard of each model, shared by all workers.

The state of an endpoint is one row of `model_endpoints`. One statement changes it before a call and one after the call,
each in its own transaction; a caller with an open transaction gets an error. So the cost of a call stays counted even
if its result is rolled back, and no lock is held during a call. Workers cannot deadlock, because each statement locks
only this one row.
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
from compaction.llm.types import BreakerOpen, CallOutcome, SpendExhausted, Usage
from compaction.models import ModelEndpoint
from conversations import sql

logger = structlog.get_logger(__name__)

# Faults of the endpoint: the next call would most likely fail, too.
FAULTS = frozenset({CallOutcome.UNREACHABLE, CallOutcome.RATE_LIMITED, CallOutcome.DENIED, CallOutcome.LEAKED})
# The endpoint works: a prompt that is too long is the caller's fault.
SUCCESSES = frozenset({CallOutcome.ANSWERED, CallOutcome.CONTEXT_LENGTH})
# The endpoint works, but not for this request; another request may succeed. A content filter that always withholds the
# summary of one chunk must not delay all others.
REQUEST_FAULTS = frozenset({CallOutcome.REFUSED, CallOutcome.BAD_ANSWER})

# The longest pause of the breaker, as a multiple of the first one.
MAX_PAUSE_FACTOR = 4
# How long after the timeout of a call another probe may begin, if the last one has not ended.
PROBE_MARGIN_SECONDS = 10

_STATEMENTS = sql.load("compaction/models.sql")


@dataclass(frozen=True)
class Guard:
    """The hooks of a ModelClient, before and after each call to one endpoint.

    `before_call` and `after_call` execute one statement each; for a forbidden call, a second one reads the reason.
    """

    name: str
    policy: ModelsPolicy
    now: Callable[[], datetime] = timezone.now
    # The primary key of the endpoint's row, if several endpoints have the same name.
    row_key: str = ""

    def before_call(self) -> None:
        """Count the next call; raises BreakerOpen or SpendExhausted if it is forbidden.

        The error's `retry_at` says when a call may be made again.
        """
        now = self.now()
        values = _values(self.policy, now) | {"name": self._key}
        if _change_row(_STATEMENTS["admit_call"], values):
            return
        [(may_pass, closed_until, may_spend, window_started_at)] = sql.rows(_STATEMENTS["why_not_called"], values)
        if may_pass and not may_spend:
            retry_at = window_started_at + timedelta(seconds=self.policy.spend_window_seconds)
            raise SpendExhausted(f"the calls or tokens for {self.name!r} are spent for now", retry_at=retry_at)
        # If there is no time, another worker has closed the breaker meanwhile.
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
            "is_request_fault": outcome in REQUEST_FAULTS,
            "most_failures": self.policy.breaker_failures,
            "pause": self.policy.breaker_pause_seconds,
            "max_pause_factor": MAX_PAUSE_FACTOR,
        }
        if outcome in SUCCESSES:
            _change_row(_STATEMENTS["record_success"], values)
            return
        [open_until] = _change_row(_STATEMENTS["record_failure"], values) or [None]
        # Log only a pause that begins now: less than a whole pause is left of an earlier one.
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
        _change_row(_STATEMENTS["refuse_temperature"], {"name": self._key, "model": model})
        logger.info("model_refuses_temperature", model=self.name, model_name=model)

    @property
    def _key(self) -> str:
        return self.row_key or self.name


def callable_models(
    chain: Iterable[str], *, policy: ModelsPolicy | None = None, now: Callable[[], datetime] = timezone.now
) -> dict[str, bool]:
    """Return the models of the chain that may be called now, in its order.

    The value is true if the circuit breaker is closed; false if its pause is over, so that one call may probe the
    model.
    """
    policy = policy or ModelsPolicy.from_settings()
    names = [name for name in chain if name in MODELS and not policy.missing(name)]
    if not names:
        return {}
    return dict(sql.rows(_STATEMENTS["callable_models"], _values(policy, now()) | {"names": names}))


def limit_waits(*, policy: ModelsPolicy | None = None, now: datetime) -> None:
    """End pauses and spending windows from before the clock was set back."""
    policy = policy or ModelsPolicy.from_settings()
    values = _values(policy, now)
    longest_pause = timedelta(seconds=policy.breaker_pause_seconds * MAX_PAUSE_FACTOR)
    sql.rows(_STATEMENTS["limit_waits"], values | {"furthest": values["probe_ends"] + longest_pause})


def guarded_client(
    name: str, *, policy: ModelsPolicy | None = None, now: Callable[[], datetime] = timezone.now, **options: Any
) -> ModelClient:
    """Build the client of a model, with its guard; raises Misconfigured."""
    policy = policy or ModelsPolicy.from_settings()
    guard = Guard(name=name, policy=policy, now=now)
    return ModelClient(
        endpoint=policy.endpoint(name),
        before_call=guard.before_call,
        after_call=guard.after_call,
        takes_temperature=guard.takes_temperature,
        on_temperature_refused=guard.remember_temperature_refused,
        secrets={**settings.SECRETS, **policy.keys()},
        **options,
    )


def _values(policy: ModelsPolicy, now: datetime) -> dict[str, Any]:
    """Build the parameters that all statements share, with the caller's time."""
    return {
        "now": now,
        "probe_ends": now + timedelta(seconds=policy.model_timeout_seconds + PROBE_MARGIN_SECONDS),
        "window_began": now - timedelta(seconds=policy.spend_window_seconds),
        "max_calls": policy.spend_max_calls,
        "max_tokens": policy.spend_max_tokens,
    }


def _change_row(statement: str, values: dict[str, Any]) -> tuple[Any, ...] | None:
    """Execute the statement in a transaction; return the changed row, or None."""
    # `durable` raises an error if a transaction is open already.
    with transaction.atomic(durable=True):
        return next(iter(sql.rows(statement, values)), None)
