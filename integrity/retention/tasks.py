"""Retention's work for later: what is due goes cold, and what an erasure has left is finished."""

from __future__ import annotations

from django_huey import db_periodic_task
from huey import crontab

from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def archive_what_is_due() -> None:
    Retention.from_settings().sweep()


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def finish_erasures() -> None:
    Erasures.from_settings().sweep()
