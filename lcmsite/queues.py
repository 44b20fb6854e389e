"""The two background queues, stored in the database or in Redis.

A task may get lost with a killed worker. The job's own row is what counts; a task only wakes somebody up to look at it.
"""

from typing import Any

import psycopg

QUEUES = ("compaction", "maintenance")

# How long a worker that is told to stop may go on with the task at hand.
SECONDS_TO_FINISH = 30


def queue_settings(*, redis_url: str, threads: int) -> dict[str, Any]:
    """`DJANGO_HUEY`: pure, as settings are made from it."""
    if redis_url:
        storage: dict[str, Any] = {"huey_class": "huey.PriorityRedisHuey", "url": redis_url}
    else:
        # The tables come from a migration: a process that only reads settings must not write to the database.
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
                # Said aloud, as django-huey would otherwise run tasks in the request whenever DEBUG is on.
                "immediate": False,
                # What a task did stands in our own tables; a result nobody fetches would stay in the queue's for ever.
                "results": False,
                "consumer": {
                    "workers": threads,
                    "worker_type": "thread",
                    # Declared for this queue alone, so that nothing is due twice.
                    "periodic": queue == "maintenance",
                    "graceful_signal": "TERM",
                    "shutdown_timeout": SECONDS_TO_FINISH,
                },
            }
            for queue in QUEUES
        },
    }


def _connect() -> "psycopg.Connection[Any]":
    # Not imported above: settings are made from this module, and connections from settings.
    from lcmsite.connections import connect

    return connect()
