"""What compaction does when others act: an append may call for room, and a job that is due wakes a worker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import structlog
from django.dispatch import receiver

from compaction import jobs
from compaction.planning.pressure import wants_compaction
from compaction.policy import CompactionPolicy
from compaction.signals import job_due, plan_due
from compaction.tasks import carry_out_plan, compact_conversation
from compaction.types import Reason
from conversations.enqueue import wake
from conversations.signals import messages_appended
from conversations.store.base import MESSAGE_OVERHEAD_TOKENS
from conversations.types import AppendedMessage, Counters

logger = structlog.get_logger(__name__)

# While the pressure lasts, a job is asked for again after so many messages: the first may have ended without a word.
# The sweep finds that, too, in a minute at most; asking takes half as long as an append.
ASK_AGAIN_AFTER = 64


@receiver(messages_appended)
def make_room_when_pressed(
    *,
    conversation_id: int,
    messages: Sequence[AppendedMessage],
    counters: Counters,
    overrides: Mapping[str, Any],
    **_: object,
) -> None:
    """Asks for a job as the pressure rises. Below the threshold, an append costs this comparison and nothing more."""
    pressed = partial(wants_compaction, overrides=overrides, policy=CompactionPolicy.from_settings())
    if not pressed(counters=counters):
        return
    before = _before(counters, messages)
    asked_lately = counters.message_count // ASK_AGAIN_AFTER == before.message_count // ASK_AGAIN_AFTER
    if not (asked_lately and pressed(counters=before)):
        jobs.request(conversation_id=conversation_id, reason=Reason.THRESHOLD)


def _before(counters: Counters, messages: Sequence[AppendedMessage]) -> Counters:
    """The counters as they were without these messages."""
    tokens = [each.token_count + MESSAGE_OVERHEAD_TOKENS for each in messages if each.created]
    return replace(
        counters,
        message_count=counters.message_count - len(tokens),
        active_messages=counters.active_messages - len(tokens),
        active_tokens=counters.active_tokens - sum(tokens),
    )


@receiver(job_due)
def wake_a_worker(*, job_id: int, delay_seconds: float, **_: object) -> None:
    wake(compact_conversation, job_id=job_id, delay_seconds=delay_seconds)


@receiver(plan_due)
def wake_a_worker_for_a_plan(*, plan_id: str, delay_seconds: float, **_: object) -> None:
    wake(carry_out_plan, plan_id=plan_id, delay_seconds=delay_seconds)
