"""Signal handlers: request jobs after appends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.dispatch import receiver

from compaction.background import jobs
from compaction.policy import CompactionPolicy
from compaction.types import Reason
from conversations.content.tokens import MESSAGE_OVERHEAD_TOKENS
from conversations.signals import messages_appended
from conversations.types import AppendedMessage, Counters

# While the pressure lasts, a job is requested again after this many messages, in case the first job has ended without
# relieving the pressure. The sweep also requests one within a minute.
REQUEST_AGAIN_AFTER = 64


@receiver(messages_appended)
def request_compaction_under_pressure(
    *,
    conversation_id: int,
    messages: Sequence[AppendedMessage],
    counters: Counters,
    overrides: Mapping[str, Any],
    **_: object,
) -> None:
    """Request a job when an append reaches a threshold, and again at intervals.

    Below the threshold, an append costs only this comparison.
    """
    policy = CompactionPolicy.from_settings().overridden(overrides)
    if not policy.needs_compaction(counters):
        return
    before = _before(counters, messages)
    was_requested = counters.message_count // REQUEST_AGAIN_AFTER == before.message_count // REQUEST_AGAIN_AFTER
    if not (was_requested and policy.needs_compaction(before)):
        jobs.request(conversation_id=conversation_id, reason=Reason.THRESHOLD)


def _before(counters: Counters, messages: Sequence[AppendedMessage]) -> Counters:
    """Return the counters as they were before these messages."""
    tokens = [each.token_count + MESSAGE_OVERHEAD_TOKENS for each in messages if each.created]
    return replace(
        counters,
        message_count=counters.message_count - len(tokens),
        active_messages=counters.active_messages - len(tokens),
        active_tokens=counters.active_tokens - sum(tokens),
    )
