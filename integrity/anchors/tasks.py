"""Anchors by the clock."""

from __future__ import annotations

from django_huey import db_periodic_task
from huey import crontab

from integrity.anchors.anchoring import AnchorService


@db_periodic_task(crontab(minute="*/5"), queue="maintenance")
def make_anchor_if_due() -> None:
    AnchorService.from_settings().sweep()
