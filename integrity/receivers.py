"""What integrity does when others act: a scan that is due wakes a worker."""

from __future__ import annotations

from functools import partial

import structlog
from django.db import transaction
from django.dispatch import receiver

from integrity.scans.tasks import scan_conversations
from integrity.signals import scan_due

logger = structlog.get_logger(__name__)


@receiver(scan_due)
def wake_a_worker(*, scan_id: int, delay_seconds: float, **_: object) -> None:
    transaction.on_commit(partial(_enqueue, scan_id, delay_seconds))


def _enqueue(scan_id: int, delay_seconds: float) -> None:
    """Wake a worker. A wake-up that fails is left to the sweep: the scan is written."""
    given = {"scan_id": scan_id, "request_id": structlog.contextvars.get_contextvars().get("request_id", "")}
    try:
        if delay_seconds > 0:
            scan_conversations.schedule(kwargs=given, delay=delay_seconds)
        else:
            scan_conversations(**given)
    except Exception as failure:
        logger.warning("wake_up_failed", scan_id=scan_id, error=type(failure).__name__)
