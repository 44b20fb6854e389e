"""Gauges read from the database at each scrape, with a timeout.

Every machine that shares a database reports the same values: use those of one machine, or the maximum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import structlog
from django.conf import settings
from django.db import Error, connection, transaction
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from compaction.llm.endpoints import ModelEndpoints
from compaction.llm.types import BreakerState, EndpointRecord
from compaction.types import Outcome
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.sql import load
from conversations.types import Level
from integrity.invariants import INVARIANTS
from lcmsite.gateway.recording.exchange_spool import Spool

logger = structlog.get_logger(__name__)

# The statement timeout, after which these gauges are missing: monitoring must not burden the database.
LONGEST_MS = 2_000
_SQL = load("lcmsite/metrics.sql")
_SITE_CODES = [invariant.code for invariant in INVARIANTS if invariant.of_the_site]


class State(Collector):
    """Queries the database at each scrape, and reports whether it responds."""

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            with transaction.atomic():
                is_writable = _limit_statement_time()
                families = [*_memory(), *_jobs(), *_recent_runs(), *_storage(), *_integrity(), *_connections()]
            families += _models(ModelEndpoints.from_settings().list_endpoints())
        except Error as failure:
            logger.warning("metrics_incomplete", error=type(failure).__name__)
            families, is_writable = [], False
        yield _gauge("lcm_database_up", "Whether the database answers in time, and accepts writes.", is_writable)
        yield _gauge(
            "lcm_pool_connections_limit", "The most connections each process keeps.", settings.DEPLOYMENT.pool_size
        )
        spool = Spool.below(settings.DATA_DIR, most_bytes=settings.DEPLOYMENT.gateway_spool_bytes)
        yield _gauges(
            "lcm_gateway_spool_bytes",
            "Bytes of exchanges that wait to be recorded, and of those that cannot be recorded.",
            "state",
            {"waiting": spool.size(), "rejected": spool.rejected_size()},
        )
        yield from families

    def describe(self) -> Iterable[GaugeMetricFamily]:
        """Nothing: describing the gauges would query the database."""
        return []


def _memory() -> Iterator[GaugeMetricFamily]:
    [found] = _rows("memory")
    whole = found["tokens"] + MESSAGE_OVERHEAD_TOKENS * found["messages"]
    yield _gauge("lcm_context_tokens_total", "Tokens in all active contexts together.", found["context_tokens"])
    yield _gauge("lcm_context_messages", "Raw messages in all active contexts together.", found["context_messages"])
    yield _gauge("lcm_tokens_stored", "Tokens of all messages, compacted or not.", found["tokens"])
    yield _gauge(
        "lcm_tokens_saved",
        "Tokens that contexts would hold in addition if nothing had been compacted.",
        max(0, whole - found["context_tokens"]),
    )
    yield _gauge("lcm_conversations", "Conversations.", found["conversations"])
    yield _gauge("lcm_conversations_quarantined", "Conversations with quarantined content.", found["with_quarantines"])
    tiers = {"hot": found["messages"] - found["cold_messages"], "cold": found["cold_messages"]}
    yield _gauges("lcm_messages", "Messages, by the tier of their texts.", "tier", tiers)


def _jobs() -> Iterator[GaugeMetricFamily]:
    jobs = GaugeMetricFamily(
        "lcm_jobs", "Jobs that are queued, leased by a worker, or failed after all attempts.", labels=["queue", "state"]
    )
    queues = _rows("jobs")
    waiting = {row["queue"]: row["seconds"] for row in _rows("waiting_jobs")}
    for row in queues:
        for state in ("queued", "leased", "failed"):
            jobs.add_metric([row["queue"], state], row[state])
    yield jobs
    yield _gauges(
        "lcm_job_oldest_seconds",
        "How long the oldest due job has been waiting for a worker; it grows if there is no worker.",
        "queue",
        {row["queue"]: waiting.get(row["queue"], 0.0) for row in queues},
    )


def _recent_runs() -> Iterator[GaugeMetricFamily]:
    found = {(row["label"], row["value"]): row["count"] for row in _rows("recent_runs")}
    yield _gauges(
        "lcm_recent_runs",
        "The newest 1,000 compaction runs of the last hour, by outcome.",
        "outcome",
        {each.value: found.get(("outcome", each.value), 0) for each in Outcome},
    )
    yield _gauges(
        "lcm_recent_summaries",
        "The summaries of these runs, by level of escalation.",
        "level",
        {each.value: found.get(("level", each.value), 0) for each in Level},
    )


def _storage() -> Iterator[GaugeMetricFamily]:
    [found] = _rows("storage")
    database = found.pop("database")
    yield _gauges("lcm_storage_bytes", "Bytes on disk, with indexes; for files, their own size.", "tier", found)
    yield _gauge("lcm_database_bytes", "Bytes of the whole database.", database)


def _integrity() -> Iterator[GaugeMetricFamily]:
    counts = {row["code"]: row["findings"] for row in _rows("open_findings", {"site_codes": _SITE_CODES})}
    yield _gauges(
        "lcm_integrity_findings",
        "Findings of each invariant in the newest reports, without those that a later check found resolved.",
        "code",
        {invariant.code: counts.get(invariant.code, 0) for invariant in INVARIANTS},
    )
    [found] = _rows("checks")
    yield _gauge(
        "lcm_conversations_with_findings",
        "Conversations that their last check did not find clean.",
        found["conversations_with_findings"],
    )
    yield _gauge(
        "lcm_integrity_report_age_seconds",
        "The age of the newest report of the whole site; without one, of the site.",
        found["report_age_seconds"],
    )


def _connections() -> Iterator[GaugeMetricFamily]:
    states = dict.fromkeys(("active", "idle", "idle in transaction"), 0)
    states |= {row["state"]: row["count"] for row in _rows("connections")}
    yield _gauges("lcm_database_connections", "LCM's connections to the database, by state.", "state", states)


def _models(endpoints: Iterable[EndpointRecord]) -> list[GaugeMetricFamily]:
    configured = [each for each in endpoints if each.is_configured or each.calls]
    breaker = GaugeMetricFamily(
        "lcm_model_breaker", "1 for the current state of a model's circuit breaker.", labels=["model", "state"]
    )
    for each in configured:
        for state in BreakerState:
            breaker.add_metric([each.name, state.value], each.state is state)
    tokens = GaugeMetricFamily(
        "lcm_model_tokens", "Tokens that a model has read (in) and written (out) in all.", labels=["model", "direction"]
    )
    for each in configured:
        tokens.add_metric([each.name, "in"], each.tokens_in)
        tokens.add_metric([each.name, "out"], each.tokens_out)
    gauges = {
        "lcm_model_calls": ("Calls of a model in all.", lambda each: each.calls),
        "lcm_model_failures": ("Calls of a model that failed, in all.", lambda each: each.failures),
        "lcm_model_cost": ("The total cost of a model, if its prices are known.", lambda each: each.cost),
        "lcm_model_window_calls": ("Calls in the current spending window.", lambda each: each.window_calls),
        "lcm_model_window_tokens": ("Tokens in that window.", lambda each: each.window_tokens),
    }
    return [
        breaker,
        tokens,
        *(
            _gauges(name, help, "model", {each.name: figure(each) for each in configured if figure(each) is not None})
            for name, (help, figure) in gauges.items()
        ),
    ]


def _limit_statement_time() -> bool:
    """Set the timeout for this transaction; returns whether it could write."""
    [row] = _rows("begin", {"timeout": str(LONGEST_MS)})
    return bool(row["is_writable"])


def _rows(name: str, values: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_SQL[name], values)
        names = [column.name for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _gauge(name: str, help: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, help, value=float(value))


def _gauges(name: str, help: str, label: str, values: Mapping[str, float]) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, help, labels=[label])
    for value, figure in values.items():
        family.add_metric([value], figure)
    return family
