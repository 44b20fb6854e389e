"""Enqueue a worker when a scan is due."""

from __future__ import annotations

import structlog
from django.dispatch import receiver

from conversations.work.queue import wake
from integrity.scans.tasks import scan_conversations
from integrity.signals import scan_due


@receiver(scan_due)
def wake_a_worker(*, scan_id: int, delay_seconds: float, **_: object) -> None:
    request_id = structlog.contextvars.get_contextvars().get("request_id", "")
    wake(scan_conversations, scan_id=scan_id, request_id=request_id, delay_seconds=delay_seconds)
