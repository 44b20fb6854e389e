"""Wake a worker for work that is written in a row; a sweep finds the row if the wake-up is lost."""

from __future__ import annotations

from functools import partial
from typing import Any

import structlog
from django.db import transaction

logger = structlog.get_logger(__name__)


def wake(task: Any, *, delay_seconds: float, **given: Any) -> None:
    """Have a task of a queue run with these values, once what is being written is committed, and after a delay.

    A wake-up that fails is left to the sweep of its room: what it was for is written, and so is what led to it. Told
    that its append had failed, a client would send it again.
    """
    transaction.on_commit(partial(_enqueue, task, given, delay_seconds))


def _enqueue(task: Any, given: dict[str, Any], delay_seconds: float) -> None:
    for is_last in (False, True):
        try:
            if delay_seconds > 0:
                task.schedule(kwargs=given, delay=delay_seconds)
            else:
                task(**given)
        except Exception as failure:
            # The queue keeps one connection. If its server was started anew, the second attempt has a new one.
            if is_last:
                logger.warning("wake_up_failed", **given, error=type(failure).__name__)
        else:
            return
