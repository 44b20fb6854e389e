"""What compaction does when others act: an append may call for room, and a job that is due wakes a worker."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from django.db import transaction
from django.dispatch import receiver

from compaction import jobs
from compaction.policy import CompactionPolicy
from compaction.pressure import wants_compaction
from compaction.signals import job_due
from compaction.tasks import compact_conversation
from compaction.types import Reason
from conversations.signals import messages_appended
from conversations.types import Counters


@receiver(messages_appended)
def make_room_when_pressed(
    *, conversation_id: int, counters: Counters, overrides: Mapping[str, Any], **_: object
) -> None:
    """Below the threshold, an append costs this comparison and nothing more."""
    policy = CompactionPolicy.from_settings()
    if wants_compaction(conversation_id=conversation_id, counters=counters, overrides=overrides, policy=policy):
        jobs.request(conversation_id=conversation_id, reason=Reason.THRESHOLD)


@receiver(job_due)
def wake_a_worker(*, job_id: int, delay_seconds: float, **_: object) -> None:
    transaction.on_commit(partial(_enqueue, job_id, delay_seconds))


def _enqueue(job_id: int, delay_seconds: float) -> None:
    if delay_seconds > 0:
        compact_conversation.schedule(kwargs={"job_id": job_id}, delay=delay_seconds)
    else:
        compact_conversation(job_id=job_id)
