"""Looks whether every promise holds, from the rows themselves, and says where one does not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils import timezone

from conversations.models import Conversation
from conversations.reading import snapshot
from conversations.scope import Scope
from conversations.store.base import EVERYTHING
from integrity.invariants import INVARIANTS, Found
from integrity.types import IntegrityReport, InvariantResult

# Conversations are looked through a batch at a time: enough for a set-based query to pay, few enough to stay small.
BATCH_MESSAGES = 200_000
BATCH_CONVERSATIONS = 2_000


@dataclass(frozen=True)
class IntegrityChecker:
    """Checks what is stored; changes nothing."""

    scope: Scope = EVERYTHING

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> IntegrityChecker:
        return cls(scope=scope)

    def run(self, *, conversation_id: int | None = None) -> IntegrityReport:
        """Check one conversation, or all; NotFound if there is no such one.

        Everything is read at one moment of the database, so that writers at work cause no finding.
        """
        started_at = timezone.now()
        found = {invariant.code: Found() for invariant in INVARIANTS}
        conversations = messages = 0
        with snapshot():
            for batch in self._batches(conversation_id):
                conversations += len(batch)
                messages += sum(batch.values())
                for invariant in INVARIANTS:
                    found[invariant.code] += invariant.find(list(batch))
        results = tuple(
            InvariantResult(
                code=invariant.code,
                severity=invariant.severity,
                sentence=invariant.sentence,
                count=found[invariant.code].count,
                findings=found[invariant.code].findings,
            )
            for invariant in INVARIANTS
        )
        return IntegrityReport(
            started_at=started_at,
            finished_at=timezone.now(),
            conversation_id=conversation_id,
            conversations_checked=conversations,
            messages_checked=messages,
            is_clean=not any(result.count for result in results),
            invariants=results,
        )

    def _batches(self, conversation_id: int | None) -> Iterator[dict[int, int]]:
        """The conversations' ids with the number of their messages, some at a time."""
        if conversation_id is not None:
            conversation = self.scope.conversation(conversation_id)
            yield {conversation_id: conversation.next_seq - 1}
            return
        rows = self.scope.narrow(Conversation.objects.order_by("conversation_id"))
        batch: dict[int, int] = {}
        for id, next_seq in rows.values_list("conversation_id", "next_seq").iterator(chunk_size=BATCH_CONVERSATIONS):
            batch[id] = next_seq - 1
            if len(batch) == BATCH_CONVERSATIONS or sum(batch.values()) >= BATCH_MESSAGES:
                yield batch
                batch = {}
        if batch:
            yield batch
