"""The servers that LCM was told to use instead of its own: asked whether they answer, before anything relies on it."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

import psycopg
from django.conf import settings

from conversations.errors import Invalid, LcmError, Unavailable
from lcmsite.connections import connect
from lcmsite.embedded.binaries import OLDEST
from lcmsite.embedded.location import EmbeddedPostgresError

# Whoever starts LCM wants an answer now, also when a server swallows every packet.
SECONDS_FOR_AN_ANSWER = 3

# The server's own word on why it refuses; what the client library says around it repeats the whole address.
_REFUSAL = re.compile(r"FATAL:\s+(.*)")


def require_servers(*, with_our_own: bool = False) -> None:
    """Unavailable, naming the setting and the host, for a server that does not answer; of our own if it should run."""
    is_asked = with_our_own or not settings.EMBEDDED_DATABASE
    for refusal in (_of_database() if is_asked else None, _of_redis()):
        if refusal is not None:
            raise refusal


def _of_database() -> LcmError | None:
    where = f"LCM_DATABASE_URL: the database at {_place(settings.DEPLOYMENT.database_url)}"
    if settings.EMBEDDED_DATABASE:
        where = f"LCM_DATA_DIR: the database in {settings.DATA_DIR}"
    try:
        with connect(connect_timeout=SECONDS_FOR_AN_ANSWER) as connection:
            version = connection.info.server_version // 10_000
    except EmbeddedPostgresError as failure:
        return Unavailable(f"{where} cannot be started: {failure}")
    except (psycopg.Error, OSError) as failure:
        told = _REFUSAL.search(str(failure))
        return Unavailable(f"{where} {f'refuses: {told[1]}' if told else 'does not answer'}.")
    if version < OLDEST:
        return Invalid(f"{where} is PostgreSQL {version}; LCM needs {OLDEST} or newer.", code="misconfigured")
    return None


def _of_redis() -> LcmError | None:
    url = settings.DEPLOYMENT.redis_url
    if not url:
        return None
    # Not imported above: where there is no Redis, nobody loads its client.
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry

    where = f"LCM_REDIS_URL: Redis at {_place(url)}"
    limits = {"socket_connect_timeout": SECONDS_FOR_AN_ANSWER, "socket_timeout": SECONDS_FOR_AN_ANSWER}
    try:
        with redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **limits) as queues:
            queues.ping()
    except (redis.AuthenticationError, redis.ResponseError) as refusal:
        return Unavailable(f"{where} refuses: {refusal}.")
    except (redis.RedisError, OSError):
        return Unavailable(f"{where} does not answer.")
    except ValueError:
        return Invalid(f"{where}: this address cannot be understood.", code="misconfigured")
    return None


def _place(url: str) -> str:
    """Where a server is, without who comes in and by which password."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return unquote(f"{parts.hostname}{port}" if parts.hostname else parts.path)
