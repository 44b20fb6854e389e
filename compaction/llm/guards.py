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
from django.db import connection, transaction
from django.utils import timezone

from compaction.llm.client import ModelClient
from compaction.llm.configuration import MODELS, ModelsPolicy
from compaction.llm.leaks import Secrets
from compaction.llm.types import CallOutcome, Usage
from compaction.llm.withheld_calls import BreakerOpen, SpendExhausted

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

_IS_WINDOW_OVER = "m.window_started_at + make_interval(secs => %(window)s) <= %(now)s"
_MAY_SPEND = f"""
    ({_IS_WINDOW_OVER} OR ((%(max_calls)s = 0 OR m.window_calls < %(max_calls)s)
                       AND (%(max_tokens)s = 0 OR m.window_tokens < %(max_tokens)s)))
"""
# An open breaker lets no call through; when its pause is over, one at a time.
_MAY_PASS = "(m.open_until IS NULL OR (m.open_until <= %(now)s AND coalesce(m.probing_until <= %(now)s, true)))"

# The conditions are looked at when the row is this statement's own: of all that come at once, one becomes the probe.
_ADMIT = f"""
    INSERT INTO model_endpoints AS m (name, window_started_at, window_calls, calls) VALUES (%(name)s, %(now)s, 1, 1)
    ON CONFLICT (name) DO UPDATE SET
        probing_until = CASE WHEN m.open_until IS NOT NULL THEN %(now)s + make_interval(secs => %(probe)s) END,
        window_started_at = CASE WHEN {_IS_WINDOW_OVER} THEN %(now)s ELSE m.window_started_at END,
        window_calls = CASE WHEN {_IS_WINDOW_OVER} THEN 1 ELSE m.window_calls + 1 END,
        window_tokens = CASE WHEN {_IS_WINDOW_OVER} THEN 0 ELSE m.window_tokens END,
        calls = m.calls + 1
    WHERE {_MAY_PASS} AND {_MAY_SPEND}
    RETURNING m.name
"""
_WHY_NOT = f"""
    SELECT {_MAY_PASS}, greatest(m.open_until, m.probing_until), {_MAY_SPEND}, m.window_started_at
    FROM model_endpoints AS m WHERE m.name = %(name)s
"""

# A call that outlasts its window counts for the next one: many long calls would otherwise cost nothing.
_SPENT = f"""
    window_started_at = CASE WHEN {_IS_WINDOW_OVER} THEN %(now)s ELSE m.window_started_at END,
    window_calls = CASE WHEN {_IS_WINDOW_OVER} THEN 0 ELSE m.window_calls END,
    window_tokens = CASE WHEN {_IS_WINDOW_OVER} THEN 0 ELSE m.window_tokens END + %(tokens_in)s + %(tokens_out)s,
    tokens_in = m.tokens_in + %(tokens_in)s,
    tokens_out = m.tokens_out + %(tokens_out)s
"""
_WORKED = f"""
    UPDATE model_endpoints AS m SET
        consecutive_failures = 0, open_until = NULL, probing_until = NULL, last_success_at = %(now)s, {_SPENT}
    WHERE m.name = %(name)s
    RETURNING m.name
"""
# Failing while the breaker is open: a call that had begun before, and no news. When its pause is over: the probe, which
# has found the endpoint even if it did not answer the request.
_FAILURES = """
    m.consecutive_failures + CASE
        WHEN m.open_until > %(now)s THEN 0 WHEN (m.open_until IS NOT NULL AND NOT %(is_there)s) OR %(is_fault)s THEN 1
        ELSE 0 END
"""
_FAILED = f"""
    UPDATE model_endpoints AS m SET
        consecutive_failures = {_FAILURES},
        open_until = CASE
            WHEN m.open_until > %(now)s THEN m.open_until
            WHEN (m.open_until IS NOT NULL AND NOT %(is_there)s)
                OR (%(is_fault)s AND {_FAILURES} >= %(most_failures)s)
            THEN %(now)s + make_interval(secs => %(pause)s
                * least(%(most_pauses)s, power(2, least(10, greatest(0, {_FAILURES} - %(most_failures)s))))) END,
        probing_until = CASE WHEN m.open_until > %(now)s THEN m.probing_until END,
        failures = m.failures + 1, last_failure = %(reason)s, last_failure_at = %(now)s, {_SPENT}
    WHERE m.name = %(name)s
    RETURNING m.open_until
"""
_CALLABLE = f"""
    SELECT wanted.name, m.open_until IS NULL
    FROM unnest(%(names)s::text[]) WITH ORDINALITY AS wanted(name, place)
    LEFT JOIN model_endpoints AS m ON m.name = wanted.name
    WHERE m.name IS NULL OR ({_MAY_PASS} AND {_MAY_SPEND})
    ORDER BY wanted.place
"""


@dataclass(frozen=True)
class Guard:
    """Stands before one endpoint: the hooks of a ModelClient.

    `before_call` and `after_call` are one statement each; a call that is withheld takes a second one, to say why.
    """

    name: str
    policy: ModelsPolicy
    now: Callable[[], datetime] = timezone.now

    def before_call(self) -> None:
        """Count the next call; BreakerOpen or SpendExhausted if it may not be made.

        The error says when: `retry_at`.
        """
        now = self.now()
        values = _values(self.policy, now) | {"name": self.name}
        if _changed(_ADMIT, values):
            return
        may_pass, closed_until, may_spend, window_started_at = _first(_WHY_NOT, values)
        if may_pass and not may_spend:
            retry_at = window_started_at + timedelta(seconds=self.policy.spend_window_seconds)
            raise SpendExhausted(f"the calls or tokens for {self.name!r} are spent for now", retry_at=retry_at)
        # By now another worker may have closed it.
        raise BreakerOpen(f"{self.name!r} has failed too often and is left alone for now", retry_at=closed_until or now)

    def after_call(self, outcome: CallOutcome, usage: Usage) -> None:
        """Record how the call ended and its cost; a fault may open the breaker."""
        now = self.now()
        values = _values(self.policy, now) | {
            "name": self.name,
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
            _changed(_WORKED, values)
            return
        [open_until] = _changed(_FAILED, values) or [None]
        # Less than a whole pause is left of one that had begun before.
        if open_until and open_until >= now + timedelta(seconds=self.policy.breaker_pause_seconds):
            logger.warning("model_left_alone", model=self.name, reason=outcome.value, until=open_until.isoformat())


def callable_models(
    chain: Iterable[str], *, policy: ModelsPolicy | None = None, now: Callable[[], datetime] = timezone.now
) -> dict[str, bool]:
    """The models of the chain that may be called now, in its order.

    It is one query, or none where the chain has no model.

    True says that the breaker is closed; false, that its pause is over and one call may find out whether it can be.
    """
    policy = policy or ModelsPolicy.from_settings()
    names = [name for name in chain if name in MODELS and not policy.missing(name)]
    if not names:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_CALLABLE, _values(policy, now()) | {"names": names})
        return dict(cursor.fetchall())


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
        secrets=Secrets({**settings.SECRETS, **policy.keys()}),
        **options,
    )


def _values(policy: ModelsPolicy, now: datetime) -> dict[str, Any]:
    """The values of all statements, by the caller's clock and not the database's."""
    return {
        "now": now,
        "probe": policy.model_timeout_seconds + PROBE_MARGIN_SECONDS,
        "window": policy.spend_window_seconds,
        "max_calls": policy.spend_max_calls,
        "max_tokens": policy.spend_max_tokens,
    }


def _changed(statement: str, values: dict[str, Any]) -> Any:
    """The row that was changed; None if none was."""
    # Durable: refused where a transaction is open already.
    with transaction.atomic(durable=True):
        return _first(statement, values)


def _first(statement: str, values: dict[str, Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()
