"""Queues for tests."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import redis
from huey import storage
from huey.api import Huey

from lcmsite.queues import queue_settings


def a_queue(name: str, *, redis_url: str, connect: Callable[[], Any] | None = None) -> Huey:
    """A queue as django-huey makes it from our settings; on another database where one is given."""
    if redis_url and storage.Redis is None:
        _give_redis()
    options = dict(queue_settings(redis_url=redis_url, threads=1)["queues"][name])
    module, kind = options.pop("huey_class").rsplit(".", 1)
    options.pop("consumer")
    if connect and not redis_url:
        options["connection"] = {"connection": connect}
    return getattr(import_module(module), kind)(**{**options, **options.pop("connection", {})})


def _give_redis() -> None:
    """To the huey of this process, which was set up to do without: what it would have imported."""
    # Not loaded anew: the queues that there are have the classes of the module as it is.
    storage.Redis, storage.ConnectionPool = redis.Redis, redis.ConnectionPool
    storage.ConnectionError, storage.TimeoutError = redis.ConnectionError, redis.TimeoutError
    storage.RedisStorage.redis_client = redis.Redis
