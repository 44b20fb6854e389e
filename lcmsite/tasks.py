"""What the site does when nobody asks for anything."""

from __future__ import annotations

from django.contrib.sessions.backends.db import SessionStore
from django_huey import db_periodic_task
from huey import crontab


@db_periodic_task(crontab(minute="37"), queue="maintenance")
def forget_ended_sessions() -> None:
    # Whoever does not log out leaves a row that is of no use to anybody when its time is over.
    SessionStore.clear_expired()
