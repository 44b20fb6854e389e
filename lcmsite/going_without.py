"""What Django does with every connection and every request, and LCM has no use for."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.signals import register_type_handlers
from django.core.cache import close_caches
from django.core.handlers.base import reset_urlconf
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, reset_queries
from django.db.backends.signals import connection_created


def go_without() -> None:
    """Have it left out, once all apps are there: together it takes longer than to find out what a request asks."""
    # Two questions with a process's first connection, for types of columns that LCM has none of.
    connection_created.disconnect(register_type_handlers)
    # Each request gives its connection back when it ends: when the next one begins, there is none to look at.
    request_started.disconnect(close_old_connections)
    # Every request finds the same paths.
    request_finished.disconnect(reset_urlconf)
    # There is no cache.
    request_finished.disconnect(close_caches)
    if not settings.DEBUG:
        # Statements are kept for debugging alone.
        request_started.disconnect(reset_queries)
