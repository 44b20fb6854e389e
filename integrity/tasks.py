"""Periodic work of integrity; each task calls one service."""

from __future__ import annotations

from django_huey import db_periodic_task
from huey import crontab

from integrity.anchors.anchoring import AnchorService
from integrity.retention.erasure import Erasures
from integrity.retention.tiers import Retention
from integrity.scans import tasks as scan_tasks  # noqa: F401 (importing registers them)


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def make_anchor_if_due() -> None:
    AnchorService.from_settings().sweep()


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def archive_what_is_due() -> None:
    Retention.from_settings().sweep()


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def finish_erasures() -> None:
    Erasures.from_settings().sweep()
