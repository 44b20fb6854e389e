"""Periodic tasks of the site."""

from __future__ import annotations

from django.contrib.sessions.backends.db import SessionStore
from django_huey import db_periodic_task
from huey import crontab


@db_periodic_task(crontab(minute="37"), queue="maintenance")
def forget_ended_sessions() -> None:
    """Delete login sessions that have expired without a logout."""
    SessionStore.clear_expired()
