"""Move texts of unused conversations to the cold tier, and back on request.

Retention never deletes texts. This module also measures the space that a workspace uses in both tiers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psycopg
import structlog
from django.db import OperationalError, transaction
from django.utils import timezone

from compaction.run import compaction_lock
from conversations.audit import Act, AuditLog
from conversations.cold_storage.archiving import Moved, archive_stretch, thaw_block
from conversations.errors import ConversationBusy, Invalid, LcmError
from conversations.models import ColdBlock, Conversation, Workspace
from conversations.models.conversation import today
from conversations.scope import EVERYTHING, Scope, Scoped
from conversations.sql import first_row, load, rows, snapshot
from integrity.models import ColdProgress
from integrity.policy import RetentionPolicy
from integrity.retention.types import RetentionRecord, StorageStatistics, Tier, TierMove

logger = structlog.get_logger(__name__)

# The maximum number of due conversations that one sweep archives.
_AT_ONCE = 500
# Counting bytes reads every message. After this timeout, the response has no byte counts.
LONGEST_COUNT_MS = 5_000

SQL = load("integrity/retention.sql")


@dataclass(frozen=True)
class Retention:
    """Moves texts of a workspace (for workers: of all) to the cold tier and back."""

    policy: RetentionPolicy
    scope: Scope = EVERYTHING
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Retention:
        return cls(policy=RetentionPolicy.from_settings(), scope=scope)

    def archive(self, *, conversation_id: int) -> TierMove:
        """Move the conversation's texts to the cold tier, whenever it was last used.

        Reads work as before. The call stops after about 20 seconds; if `more` is true, call again. Each range of
        messages has its own transaction and audit entry, and is committed only after it was read back unchanged. Raises
        NotFound; ConversationBusy, retryable, while a compaction is running.
        """
        self.scope.conversation(conversation_id)
        return self._archive(conversation_id, after_seq=0, deadline=self._deadline())

    def thaw(self, *, conversation_id: int) -> TierMove:
        """Move the conversation's texts back into their rows, where searches find them.

        The count of days without use restarts at 0. The call stops after about 20 seconds; if `more` is true, call
        again. Raises NotFound; ConversationBusy, retryable, while a compaction is running.
        """
        self.scope.conversation(conversation_id)
        deadline = self._deadline()
        log, moves = AuditLog(self.scope), list[Moved]()
        with compaction_lock(conversation_id):
            with transaction.atomic():
                # The sweep must not archive it again soon, and must later start from its first message.
                Conversation.objects.filter(pk=conversation_id).update(last_used_on=today())
                ColdProgress.objects.filter(pk=conversation_id).delete()
            while (moved := thaw_block(conversation_id, log=log)) is not None:
                moves.append(moved)
                if self.clock() >= deadline:
                    break
        more = ColdBlock.objects.filter(conversation_id=conversation_id).exists()
        return _move(conversation_id, Tier.HOT, moves, more=more)

    def get_retention(self) -> RetentionRecord:
        """Show the retention, and how many conversations are due to move to cold."""
        return self._record(self._workspace())

    def set_retention(self, *, cold_after_days: int | None = None) -> RetentionRecord:
        """Set the days without use after which texts move to the cold tier.

        Without `cold_after_days`, the site's default applies. Cold conversations stay cold until they are thawed. To
        keep all texts of a workspace in the hot tier, set 36,500 days, a hundred years.
        """
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
        """Archive the due conversations; return the number of messages that were moved.

        Conversations that are being compacted, or cannot be moved, are skipped until the next sweep.
        """
        deadline = self._deadline()
        messages = 0
        for (conversation_id,) in rows(SQL["due_conversations"], self._due_values(limit=_AT_ONCE)):
            if self.clock() >= deadline:
                break
            try:
                through = ColdProgress.objects.filter(pk=conversation_id).values_list("through_seq", flat=True).first()
                messages += self._archive(conversation_id, after_seq=through or 0, deadline=deadline).messages
            except ConversationBusy:
                continue
            except LcmError as refusal:
                logger.error("archiving_refused", conversation_id=conversation_id, error=refusal.code)
        return messages

    def _archive(self, conversation_id: int, *, after_seq: int, deadline: float) -> TierMove:
        log, moves = AuditLog(self.scope), list[Moved]()
        newest = Conversation.objects.values_list("next_seq", flat=True).get(pk=conversation_id) - 1
        more = False
        with compaction_lock(conversation_id):
            while (moved := archive_stretch(conversation_id, after_seq=after_seq, log=log)) is not None:
                moves.append(moved)
                after_seq = moved.last_seq
                if more := self.clock() >= deadline:
                    break
            # If `more` is false, no later message can be moved: all are cold, erased or damaged.
            through = after_seq if more else max(after_seq, newest)
            ColdProgress.objects.update_or_create(
                conversation_id=conversation_id, defaults={"through_seq": through, "moved_at": timezone.now()}
            )
        return _move(conversation_id, Tier.COLD, moves, more=more and through < newest)

    def _deadline(self) -> float:
        return self.clock() + self.policy.archive_seconds

    def _workspace(self) -> Workspace:
        if self.scope.workspace_id is None:
            raise Invalid("Retention is set for each workspace; name a workspace.")
        return Workspace.objects.get(pk=self.scope.workspace_id)

    def _due_values(self, *, limit: int | None = None) -> dict[str, int | None]:
        return {"workspace_id": self.scope.workspace_id, "default": self.policy.cold_after_days, "limit": limit}

    def _record(self, workspace: Workspace) -> RetentionRecord:
        default = self.policy.cold_after_days
        [[due]] = rows(f"SELECT count(*) FROM ({SQL['due_conversations']}) AS due", self._due_values())
        return RetentionRecord(
            workspace_id=workspace.pk,
            cold_after_days=workspace.cold_after_days,
            default_days=default,
            effective_days=workspace.cold_after_days or default or None,
            due_conversations=due,
        )


def _move(conversation_id: int, tier: Tier, moves: Sequence[Moved], *, more: bool) -> TierMove:
    return TierMove(
        conversation_id=conversation_id,
        tier=tier,
        messages=sum(moved.messages for moved in moves),
        blocks=sum(moved.messages > 0 for moved in moves),
        bytes_in_rows=sum(moved.bytes_before for moved in moves),
        bytes_in_blocks=sum(moved.bytes_packed for moved in moves),
        cold_messages=Conversation.objects.get(pk=conversation_id).cold_messages,
        more=more,
        damaged_ids=tuple(f"msg_{message_id}" for moved in moves for message_id in moved.damaged),
    )


class StorageReport(Scoped):
    """Storage counts of one workspace or, for the site administrator, of all."""

    def storage(self) -> StorageStatistics:
        """Count messages, summaries, files and bytes by tier, and the bytes saved."""
        owned = {"workspace_id": self.scope.workspace_id}
        counts = first_row(SQL["space_used"], owned)
        assert counts is not None, "it has one row"
        hot_bytes = None
        try:
            with snapshot(settings={"statement_timeout": str(LONGEST_COUNT_MS)}):
                [(hot_bytes,)] = rows(SQL["hot_bytes"], owned)
        except OperationalError as error:
            if not isinstance(error.__cause__, psycopg.errors.QueryCanceled):
                raise
        return StorageStatistics(**counts, hot_bytes=hot_bytes)
