"""Connections outside Django's pool, and checks that the servers can be used."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import psycopg
from django.conf import settings
from django.db import connections

from conversations.errors import Invalid, LcmError, Unavailable
from lcmsite.embedded_postgres.binaries import OLDEST
from lcmsite.embedded_postgres.lease import EmbeddedPostgres
from lcmsite.embedded_postgres.location import EmbeddedPostgresError

T = TypeVar("T")
# Short, so that startup fails at once even if a firewall drops every packet.
CONNECT_TIMEOUT_SECONDS = 3

SHARED_SESSIONS = (
    "is behind a pooler that gives each transaction another session (PgBouncer with pool_mode=transaction or"
    " statement); LCM needs sessions of its own: use pool_mode=session, or the server's direct address"
)

# Matches the server's own message, without the text of the client library, which repeats the whole address.
_REFUSAL = re.compile(r"FATAL:\s+(.*)")

# Short reasons for failed connections, without names and addresses, by a pattern for the text of the error: it has no
# code.
_REASONS = {
    r"authentication failed|no password|no pg_hba|role .* does not exist|not permitted to log in": "login refused",
    r"session is read-only": "no writes accepted",
    r"starting up|shutting down": "starting or stopping",
    r"too many|remaining connection slots|no more connections": "too many connections",
    r"database .* does not exist": "unknown database",
    r"resolve host|translate host name": "unknown host name",
    r"timeout|timed out": "timeout",
    r"refused|No such file": "connection refused",
}


def reason_of(failure: Exception) -> str:
    """A short reason why a connection failed, in brackets; empty if unknown."""
    return next((f" ({reason})" for text, reason in _REASONS.items() if re.search(text, str(failure))), "")


def embedded_database() -> EmbeddedPostgres:
    """The embedded PostgreSQL server, for sites without LCM_DATABASE_URL."""
    return EmbeddedPostgres(**connections["default"].settings_dict["EMBEDDED"])


def connect(**more: Any) -> psycopg.Connection[Any]:
    """Open a plain psycopg connection with the site's parameters and the caller's."""
    if settings.EMBEDDED_DATABASE:
        embedded_database().hold()
    parameters = connections["default"].get_connection_params() | more
    # These are Django's cursor and type adapters; callers expect psycopg's.
    for name in ("cursor_factory", "context"):
        parameters.pop(name)
    return psycopg.connect(**parameters)


def require_servers(*, with_our_own: bool = False) -> None:
    """Raise Unavailable or Invalid if the database or Redis cannot be used.

    The error names the setting and the host. The embedded database is checked only `with_our_own`.
    """
    is_checked = with_our_own or not settings.EMBEDDED_DATABASE
    for refusal in (_database_problem() if is_checked else None, redis_problem()):
        if refusal is not None:
            raise refusal


def _database_problem() -> LcmError | None:
    where = f"LCM_DATABASE_URL: the database at {_host_and_port(settings.DEPLOYMENT.database_url)}"
    if settings.EMBEDDED_DATABASE:
        where = f"LCM_DATA_DIR: the database in {settings.DATA_DIR}"
    try:
        with connect(connect_timeout=CONNECT_TIMEOUT_SECONDS, autocommit=True) as connection:
            version = connection.info.server_version // 10_000
            is_pooled = not settings.EMBEDDED_DATABASE and shares_sessions(connection)
    except EmbeddedPostgresError as failure:
        return Unavailable(f"{where} cannot be started: {failure}")
    except (psycopg.Error, OSError) as failure:
        refused = _REFUSAL.search(str(failure))
        why = f"refuses: {refused[1]}" if refused else f"does not respond{reason_of(failure)}"
        return Unavailable(f"{where} {why}.")
    if version < OLDEST:
        return Invalid(f"{where} is PostgreSQL {version}; LCM needs {OLDEST} or newer.", code="misconfigured")
    if is_pooled:
        return Invalid(f"{where} {SHARED_SESSIONS}.", code="misconfigured")
    return None


def shares_sessions(first: psycopg.Connection[Any]) -> bool:
    """Whether a pooler gives each transaction another session of the server.

    A direct connection keeps one server process, which no other connection uses. Behind a pooler, both connections
    get the same process, or one gets several. The queries alternate, and also run twice in a row on each connection, so
    that this shows whatever the order in which the pooler gives out free processes.
    """
    with connect(connect_timeout=CONNECT_TIMEOUT_SECONDS, autocommit=True) as second:
        met: dict[Any, set[int]] = {first: set(), second: set()}
        for connection in (first, first, second, second, first, second):
            met[connection] |= {pid for (pid,) in connection.execute("SELECT pg_backend_pid()", prepare=False)}
    return len(met[first]) > 1 or len(met[second]) > 1 or met[first] == met[second]


def redis_problem(*, timeout_seconds: int = CONNECT_TIMEOUT_SECONDS) -> LcmError | None:
    """Return why Redis cannot be used; None if it can, or if the site has none."""
    url = settings.DEPLOYMENT.redis_url
    if not url:
        return None
    # Imported here, so that a site without Redis does not load its client.
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    where = f"LCM_REDIS_URL: Redis at {_host_and_port(url)}"
    limits = {"socket_connect_timeout": timeout_seconds, "socket_timeout": timeout_seconds}
    try:
        with redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **limits) as queues:
            queues.ping()
    except (redis.AuthenticationError, redis.ResponseError) as refusal:
        return Unavailable(f"{where} refuses: {refusal}.")
    except (redis.RedisError, OSError):
        return Unavailable(f"{where} does not respond.")
    except ValueError:
        return Invalid(f"{where}: the Redis client cannot read this address.", code="misconfigured")
    return None


def _host_and_port(url: str) -> str:
    """The host and port in a URL, or its path; never the credentials."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return unquote(f"{parts.hostname}{port}" if parts.hostname else parts.path)


def closing_connections(work: Callable[[], T]) -> T:
    """Return `work()`, and close this thread's connections even if it raises."""
    try:
        return work()
    finally:
        connections.close_all()
