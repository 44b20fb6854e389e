"""Health endpoints: whether the process is alive, and ready. They need no key."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import psycopg
import structlog
from django.conf import settings
from django.db.migrations.loader import MigrationLoader
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe

from conversations.sql import load
from lcmsite.connections import connect, reason_of, redis_problem
from lcmsite.embedded_postgres.binaries import OLDEST
from lcmsite.embedded_postgres.location import EmbeddedPostgresError

logger = structlog.get_logger(__name__)

# Short, so that a probe gets an answer even if a firewall drops every packet.
CONNECT_TIMEOUT_SECONDS = 2
# If a due job waits longer, there is no worker: a lost wake-up would be replaced within a minute.
LONGEST_JOB_WAIT_SECONDS = 300

_ROOMS = ("conversations", "compaction", "retrieval", "integrity", "lcmsite")
_WAITING_JOBS = load("lcmsite/metrics.sql")["waiting_jobs"]


@dataclass(frozen=True)
class SiteHealth:
    """What keeps the site from working; warnings are looked for if nothing does."""

    status: str
    missing: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether requests can be served."""
        return not self.missing


@csrf_exempt
@never_cache
@require_safe
def alive(request: HttpRequest) -> JsonResponse:
    """200 as long as the process responds."""
    return JsonResponse({"status": "alive"})


@csrf_exempt
@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 if requests can be served; otherwise 503 with a list of what is missing.

    Queues that do not respond and jobs without a worker are only warnings: messages are stored all the same, and
    sending requests to another web process would not help.
    """
    health = site_health()
    if health.missing:
        logger.warning("not_ready", missing=health.missing)
    answer: dict[str, Any] = {"status": health.status, "missing": health.missing}
    if health.warnings:
        answer["warnings"] = health.warnings
    return JsonResponse(answer, status=200 if health.is_clean else 503)


def site_health() -> SiteHealth:
    """Examine the database, Redis and the queues."""
    missing = not_ready()
    warnings = () if missing else (*_queue_warnings(), *_worker_warnings())
    return SiteHealth("not ready" if missing else "ready", tuple(missing), warnings)


def not_ready() -> list[str]:
    """Sentences about what keeps the site from working; empty if it is ready."""
    # Do not use the pool: a probe would wait for a free connection for as long as a request may.
    try:
        with connect(connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
            version = connection.info.server_version // 10_000
            if version < OLDEST:
                return [f"the database is PostgreSQL {version}: LCM needs {OLDEST} or newer"]
            if connection.execute("SELECT to_regclass('django_migrations')").fetchone() == (None,):
                return ["the database is empty: run `lcm up` or `manage.py migrate`"]
            applied = set(connection.execute("SELECT app, name FROM django_migrations").fetchall())
            is_read_only = connection.execute("SHOW transaction_read_only").fetchone() == ("on",)
    except (psycopg.Error, EmbeddedPostgresError, OSError) as failure:
        return [f"the database cannot be reached{reason_of(failure)}"]
    problems = [f"migration {app}.{name} is not applied" for app, name in sorted(_migrations() - applied)]
    problems += [f"migration {name} is newer than this code" for name in newer_migrations(applied)]
    # The embedded server is read-only while its disk is nearly full. No other server could take the reads.
    if is_read_only and not settings.EMBEDDED_DATABASE:
        problems.append("the database accepts no writes: it is a standby, or was made read-only")
    return problems


def newer_migrations(applied: Iterable[tuple[str, str]]) -> list[str]:
    """Name LCM's applied migrations that are not in this code."""
    return sorted(f"{app}.{name}" for app, name in set(applied) - _migrations() if app in _ROOMS)


def _worker_warnings() -> list[str]:
    """A warning for each queue whose due jobs have waited too long for a worker."""
    try:
        with connect(connect_timeout=CONNECT_TIMEOUT_SECONDS) as connection:
            waiting = connection.execute(_WAITING_JOBS).fetchall()
    except (psycopg.Error, EmbeddedPostgresError, OSError):
        return []
    return [
        f"a job of {queue} has been waiting for {seconds / 60:.0f} minutes: is there a worker?"
        for queue, seconds in waiting
        if seconds > LONGEST_JOB_WAIT_SECONDS
    ]


def _queue_warnings() -> list[str]:
    is_away = redis_problem(timeout_seconds=CONNECT_TIMEOUT_SECONDS) is not None
    return ["Redis, where the queues are, cannot be reached"] if is_away else []


@cache
def _migrations() -> frozenset[tuple[str, str]]:
    """The migrations in the code, read once per process."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).disk_migrations)
