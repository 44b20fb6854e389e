"""Periodic tasks of the store."""

from __future__ import annotations

from django_huey import db_periodic_task
from huey import crontab

from conversations.files.uploads import UploadService


@db_periodic_task(crontab(minute="17"), queue="maintenance")
def sweep_uploads() -> None:
    """Delete uploads that have made no progress for long."""
    UploadService.from_settings().sweep()
