"""Moves the texts of conversations that nobody uses to the cold tier, and back on request. Retention never removes."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from django.db import transaction
from django.utils import timezone

from compaction.locks import compaction_lock
from conversations.audit import Act, AuditLog
from conversations.cold_storage.archiving import Moved, archive_stretch, thaw_block
from conversations.errors import ConversationBusy, Invalid, LcmError
from conversations.models import ColdBlock, Conversation, Workspace
from conversations.scope import Scope
from conversations.sql import rows
from conversations.store.base import EVERYTHING
from conversations.store.last_used import today
from integrity.models import ColdProgress
from integrity.policy import MOST_DAYS, RetentionPolicy
from integrity.retention.types import RetentionRecord, Tier, TierMove

logger = logging.getLogger(__name__)

# Of the conversations that are due, one wake-up looks at so many, those unused longest first.
_AT_ONCE = 500

# Those that have gone cold as far as they can are passed over by a row of ours: nobody has to look at their messages.
_DUE = """
    FROM conversations c JOIN workspaces w USING (workspace_id)
    LEFT JOIN cold_progress p USING (conversation_id)
    WHERE (%(workspace_id)s::bigint IS NULL OR c.workspace_id = %(workspace_id)s)
      AND coalesce(w.cold_after_days, %(default)s) > 0
      AND c.last_used_on <= (now() AT TIME ZONE 'UTC')::date - coalesce(w.cold_after_days, %(default)s)
      AND coalesce(p.through_seq, 0) < c.next_seq - 1
"""
_NEXT_DUE = f"SELECT c.conversation_id {_DUE} ORDER BY c.last_used_on, c.conversation_id LIMIT {_AT_ONCE}"
_COUNT_DUE = f"SELECT count(*) {_DUE}"


@dataclass
class _Moves:
    """What one call has moved so far."""

    messages: int = 0
    blocks: int = 0
    bytes_in_rows: int = 0
    bytes_in_blocks: int = 0
    damaged_ids: list[str] = field(default_factory=list)

    def add(self, moved: Moved) -> None:
        self.messages += moved.messages
        self.blocks += bool(moved.messages)
        self.bytes_in_rows += moved.bytes_before
        self.bytes_in_blocks += moved.bytes_packed
        self.damaged_ids += [f"msg_{message_id}" for message_id in moved.damaged]


@dataclass(frozen=True)
class Retention:
    """For one workspace or, for workers, for all."""

    policy: RetentionPolicy
    scope: Scope = EVERYTHING
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Retention:
        return cls(policy=RetentionPolicy.from_settings(), scope=scope)

    def archive(self, *, conversation_id: int) -> TierMove:
        """Move the conversation's texts to the cold tier, whatever its age; they are read as before.

        Bounded by 20 seconds: with `more`, another call goes on. Each stretch is a transaction of its own,
        in the audit log, and is committed only once it reads back the same. Raises NotFound, and ConversationBusy
        while a compaction is at work.
        """
        self.scope.conversation(conversation_id)
        return self._archive(conversation_id, after_seq=0, deadline=self._deadline())

    def thaw(self, *, conversation_id: int) -> TierMove:
        """Bring the conversation's texts back into their rows, where searches find them; its days begin anew.

        Bounded as `archive` is. Raises NotFound, and ConversationBusy while a compaction is at work.
        """
        self.scope.conversation(conversation_id)
        deadline = self._deadline()
        log, moves = AuditLog(self.scope), _Moves()
        with compaction_lock(conversation_id):
            with transaction.atomic():
                # Not to be moved again tomorrow, and from the beginning when its time comes.
                Conversation.objects.filter(pk=conversation_id).update(last_used_on=today())
                ColdProgress.objects.filter(pk=conversation_id).delete()
            while (moved := thaw_block(conversation_id, log=log)) is not None:
                moves.add(moved)
                if self.clock() >= deadline:
                    break
        more = ColdBlock.objects.filter(conversation_id=conversation_id).exists()
        return _move(conversation_id, Tier.HOT, moves, more=more)

    def get_retention(self) -> RetentionRecord:
        """After how many days without use the workspace's conversations go cold, and how many are due."""
        return self._record(self._workspace())

    def set_retention(self, *, cold_after_days: int | None = None) -> RetentionRecord:
        """Let conversations go cold after so many days without use; None for whatever the site's default is.

        What is cold already stays so until it is thawed. A workspace that wants none of it, whatever the default, says
        36,500: a hundred years.
        """
        if cold_after_days is not None and (
            isinstance(cold_after_days, bool)
            or not isinstance(cold_after_days, int)
            or not 1 <= cold_after_days <= MOST_DAYS
        ):
            raise Invalid(f"cold_after_days: {str(cold_after_days)[:80]!r} is not a number from 1 to {MOST_DAYS:,}.")
        with transaction.atomic():
            workspace = Workspace.objects.select_for_update().get(pk=self._workspace().pk)
            AuditLog(self.scope).record(
                Act.SET_RETENTION,
                workspace_id=workspace.pk,
                detail={"before": workspace.cold_after_days, "after": cold_after_days},
            )
            workspace.cold_after_days = cold_after_days
            workspace.save(update_fields=["cold_after_days"])
        return self._record(workspace)

    def sweep(self) -> int:
        """Archive what is due, for so long as one wake-up may take; how many messages went cold.

        A conversation that is being compacted, or that cannot be moved, is passed over; the next wake-up tries again.
        """
        deadline = self._deadline()
        messages = 0
        for (conversation_id,) in rows(_NEXT_DUE, self._due_values()):
            if self.clock() >= deadline:
                break
            try:
                through = ColdProgress.objects.filter(pk=conversation_id).values_list("through_seq", flat=True).first()
                messages += self._archive(conversation_id, after_seq=through or 0, deadline=deadline).messages
            except ConversationBusy:
                continue
            except LcmError as refusal:
                logger.error("archiving_refused", extra={"conversation_id": conversation_id, "error": refusal.code})
        return messages

    def _archive(self, conversation_id: int, *, after_seq: int, deadline: float) -> TierMove:
        log, moves = AuditLog(self.scope), _Moves()
        newest = _newest(conversation_id)
        more = False
        with compaction_lock(conversation_id):
            while (moved := archive_stretch(conversation_id, after_seq=after_seq, log=log)) is not None:
                moves.add(moved)
                after_seq = moved.last_seq
                if more := self.clock() >= deadline:
                    break
            # What is passed over at the end had nothing that could move: it was erased, or is damaged.
            through = after_seq if more else max(after_seq, newest)
            ColdProgress.objects.update_or_create(
                conversation_id=conversation_id, defaults={"through_seq": through, "moved_at": timezone.now()}
            )
        return _move(conversation_id, Tier.COLD, moves, more=more and through < newest)

    def _deadline(self) -> float:
        return self.clock() + self.policy.archive_seconds

    def _workspace(self) -> Workspace:
        if self.scope.workspace_id is None:
            raise Invalid("Each workspace has a rule of its own: say which.")
        return Workspace.objects.get(pk=self.scope.workspace_id)

    def _due_values(self) -> dict[str, int | None]:
        return {"workspace_id": self.scope.workspace_id, "default": self.policy.cold_after_days}

    def _record(self, workspace: Workspace) -> RetentionRecord:
        default = self.policy.cold_after_days
        [[due]] = rows(_COUNT_DUE, {"workspace_id": workspace.pk, "default": default})
        return RetentionRecord(
            workspace_id=workspace.pk,
            cold_after_days=workspace.cold_after_days,
            default_days=default,
            effective_days=workspace.cold_after_days or default or None,
            due_conversations=due,
        )


def _newest(conversation_id: int) -> int:
    return Conversation.objects.values_list("next_seq", flat=True).get(pk=conversation_id) - 1


def _move(conversation_id: int, tier: Tier, moves: _Moves, *, more: bool) -> TierMove:
    cold = Conversation.objects.values_list("cold_messages", flat=True).get(pk=conversation_id)
    return TierMove(
        conversation_id=conversation_id,
        tier=tier,
        messages=moves.messages,
        blocks=moves.blocks,
        bytes_in_rows=moves.bytes_in_rows,
        bytes_in_blocks=moves.bytes_in_blocks,
        cold_messages=cold,
        more=more,
        damaged_ids=tuple(moves.damaged_ids),
    )
