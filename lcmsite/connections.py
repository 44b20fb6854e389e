"""Connections outside Django's pool: for those who keep one for good, or must not wait for one."""

from typing import Any

import psycopg
from django.conf import settings
from django.db import connections

from lcmsite.embedded_postgres.lease import EmbeddedPostgres


def own_database() -> EmbeddedPostgres:
    """The server that LCM runs itself where it is given none."""
    return EmbeddedPostgres(settings.DATA_DIR, min_free=settings.DEPLOYMENT.min_free_bytes)


def connect(**more: Any) -> "psycopg.Connection[Any]":
    """A plain psycopg connection with the site's parameters and some more of the caller's."""
    if settings.EMBEDDED_DATABASE:
        own_database().hold()
    parameters = connections["default"].get_connection_params() | more
    # Django's own ways to read rows; everybody else expects psycopg's.
    for name in ("cursor_factory", "context"):
        parameters.pop(name)
    return psycopg.connect(**parameters)
