"""The two background queues, stored in the database or in Redis.

A killed worker may lose a task. The job's own row is authoritative; a task only tells a worker to process that row.
"""

from typing import Any

import psycopg

QUEUES = ("compaction", "maintenance")

# Above the second for which a waiting worker blocks.
REDIS_TIMEOUT_SECONDS = 2
# How long a stopping worker may take to finish its current task.
SECONDS_TO_FINISH = 30


def queue_settings(*, redis_url: str, threads: int) -> dict[str, Any]:
    """Build the `DJANGO_HUEY` setting. Pure, as the settings module calls it."""
    if redis_url:
        storage: dict[str, Any] = {"huey_class": "huey.PriorityRedisHuey", "url": with_timeouts(redis_url)}
    else:
        # A migration creates the tables: a process that only reads settings must not write to the database.
        storage = {
            "huey_class": "huey.PostgresHuey",
            "connection": {"connection": _connect},
            "create_tables": False,
            "table_prefix": "huey",
        }
    return {
        "default": "maintenance",
        "queues": {
            queue: {
                **storage,
                "name": f"lcm-{queue}",
                # Set explicitly: otherwise django-huey runs tasks inside the request if DEBUG is on.
                "immediate": False,
                # Results are in LCM's own tables; those in the queue would never be fetched, and accumulate.
                "results": False,
                "consumer": {
                    "workers": threads,
                    "worker_type": "thread",
                    # Only one queue schedules periodic tasks, so that none is enqueued twice.
                    "periodic": queue == "maintenance",
                    "graceful_signal": "TERM",
                    "shutdown_timeout": SECONDS_TO_FINISH,
                },
            }
            for queue in QUEUES
        },
    }


def with_timeouts(redis_url: str) -> str:
    """Add timeouts to a URL of Redis; the client uses the URL's own, if it has any."""
    options = f"socket_timeout={REDIS_TIMEOUT_SECONDS}&socket_connect_timeout={REDIS_TIMEOUT_SECONDS}"
    return f"{redis_url}{'&' if '?' in redis_url else '?'}{options}"


def _connect() -> "psycopg.Connection[Any]":
    # Imported here: the settings import this module, and `connections` needs the settings.
    from lcmsite.connections import connect

    return connect()
