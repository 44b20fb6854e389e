"""Queues for tests."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from huey.api import Huey

from lcmsite.queues import queue_settings


def a_queue(name: str, *, redis_url: str, connect: Callable[[], Any] | None = None) -> Huey:
    """A queue as django-huey makes it from our settings; on another database where one is given."""
    options = dict(queue_settings(redis_url=redis_url, threads=1)["queues"][name])
    module, kind = options.pop("huey_class").rsplit(".", 1)
    options.pop("consumer")
    if connect and not redis_url:
        options["connection"] = {"connection": connect}
    return getattr(import_module(module), kind)(**{**options, **options.pop("connection", {})})
