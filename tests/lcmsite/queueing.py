"""Queues for tests."""

from collections.abc import Callable
from importlib import import_module, reload
from typing import Any

import huey
from huey.api import Huey

from lcmsite.queues import queue_settings


def a_queue(name: str, *, redis_url: str, connect: Callable[[], Any] | None = None) -> Huey:
    """A queue as django-huey makes it from our settings; on another database where one is given."""
    if redis_url and huey.storage.Redis is None:
        # Set up without Redis, this process has a huey that does without it.
        for module in (huey.storage, huey.api, huey):
            reload(module)
    options = dict(queue_settings(redis_url=redis_url, threads=1)["queues"][name])
    module, kind = options.pop("huey_class").rsplit(".", 1)
    options.pop("consumer")
    if connect and not redis_url:
        options["connection"] = {"connection": connect}
    return getattr(import_module(module), kind)(**{**options, **options.pop("connection", {})})
