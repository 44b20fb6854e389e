"""Erase texts permanently, on legal request; nothing else in LCM deletes texts.

An erased row stays as a tombstone with its position, times and hashes, so the hash chain can still be verified.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.core.files.storage import Storage, default_storage
from django.db import transaction
from django.utils import timezone

from compaction.background import jobs
from compaction.run import compaction_lock
from compaction.sources import has_text_left
from compaction.types import Reason
from conversations.audit import Act, AuditLog
from conversations.content.tokens import TokenEstimator
from conversations.errors import Conflict, Invalid, NotFound
from conversations.files.large_files import remove_bytes_unless_needed
from conversations.files.storage import STORAGE_FAILURES
from conversations.humanize import counted
from conversations.models import ContextItem, Conversation, Message
from conversations.scope import EVERYTHING, Scope
from integrity.models import Erasure
from integrity.policy import RetentionPolicy
from integrity.retention.erasure_extent import Extent
from integrity.retention.types import ErasurePreview, ErasureResult

logger = structlog.get_logger(__name__)

# The sweep requests new summaries for this long after an erasure. Then it gives up, because if the remaining sources
# are very short, no summary can be shorter than they are.
REQUESTED_FOR = timedelta(days=1)
# A preview lists this many summaries.
MOST_LISTED = 100


@dataclass(frozen=True)
class Erasures:
    """Previews erasures and carries them out, for administrators."""

    policy: RetentionPolicy
    tokens: TokenEstimator
    storage: Storage
    scope: Scope = EVERYTHING
    now: Callable[[], datetime] = timezone.now

    @classmethod
    def from_settings(cls, scope: Scope = EVERYTHING) -> Erasures:
        return cls(
            policy=RetentionPolicy.from_settings(),
            tokens=TokenEstimator.from_settings(),
            storage=default_storage,
            scope=scope,
        )

    def preview_erasure(
        self,
        *,
        conversation_id: int,
        from_seq: int | None = None,
        to_seq: int | None = None,
        message_ids: Sequence[int] = (),
        file_ids: Sequence[str] = (),
    ) -> ErasurePreview:
        """Show everything that erasing these messages and files would remove.

        Nothing changes yet. Name messages by a range of seqs or by ids, and files by ids. If you name neither, the
        erasure covers the whole conversation. The erasure includes files that only these messages need, the files that
        map runs of this conversation made from its files, and the text of every summary made from them. The response
        has an id and a confirmation, which `erase` accepts for an hour. Raises NotFound; Invalid for a wrong range;
        Invalid `nothing_to_erase`.
        """
        conversation = self.scope.conversation(conversation_id)
        is_whole = from_seq is None and to_seq is None and not message_ids and not file_ids
        named = self._resolve_messages(conversation.pk, from_seq, to_seq, message_ids)
        self._require_files(conversation.pk, file_ids)
        extent = Extent.of(conversation.pk, named, file_ids, is_whole=is_whole)
        if not extent.messages and not extent.files:
            raise Invalid(_nothing(conversation, named, file_ids, is_whole=is_whole), code="nothing_to_erase")
        with transaction.atomic():
            erasure = Erasure.objects.create(
                erasure_id=f"era_{secrets.token_hex(8)}",
                conversation_id=conversation.pk,
                requested_by=self.scope.actor,
                expires_at=self.now() + timedelta(minutes=self.policy.erasure_minutes),
                message_ids=[message.message_id for message in extent.messages],
                file_ids=list(file_ids),
                is_whole=is_whole,
                fingerprint=extent.fingerprint,
                confirmation=_confirmation(extent),
            )
            AuditLog(self.scope).record(
                Act.PREVIEW_ERASURE,
                workspace_id=conversation.workspace_id,
                conversation_id=conversation.pk,
                target=erasure.erasure_id,
                detail=_figures(extent),
            )
        return _preview(erasure, extent)

    def erase(self, *, erasure_id: str, confirmation: str) -> ErasureResult:
        """Carry out a previewed erasure permanently.

        `confirmation` is the text that the preview shows. One transaction, recorded in the audit log, removes:

        - texts, metadata and authors of the messages, also in the cold tier; a hash replaces their idempotency keys
        - texts of all summaries made from them, also of session, arc and epoch summaries
        - the files, and their bytes unless another file has the same bytes
        - prompts, inputs and outputs of map runs over these files, and the files that the runs wrote in this
          conversation; the runs are cancelled
        - reasons of quarantines, questions of grants and names of uploads about them
        - for a whole conversation, also its title, metadata, instructions, journal and the metadata of its boundaries

        Rows, seqs and hashes stay. Summaries in the active context, and those of sessions, arcs and epochs, are
        regenerated from the remaining messages.

        Raises NotFound; Invalid `not_confirmed`; Conflict `erasure_expired`, `erasure_done`, or `erasure_outdated` if
        the content has changed since the preview; ConversationBusy, retryable, while a compaction is running.
        """
        erasure = self._find_confirmed(erasure_id, confirmation)
        with compaction_lock(erasure.conversation_id), transaction.atomic():
            conversation = self.scope.conversation(erasure.conversation_id, locked=True)
            erasure = Erasure.objects.select_for_update().get(pk=erasure.pk)
            self._require_open(erasure)
            extent = Extent.of(conversation.pk, erasure.message_ids, erasure.file_ids, is_whole=erasure.is_whole)
            if extent.fingerprint != erasure.fingerprint:
                raise Conflict(
                    "The conversation has changed since the preview, so more or less would be erased. Preview again.",
                    code="erasure_outdated",
                )
            act = AuditLog(self.scope).record(
                Act.ERASE,
                workspace_id=conversation.workspace_id,
                conversation_id=conversation.pk,
                target=erasure.erasure_id,
                detail=_figures(extent),
            )
            act.refresh_from_db(fields=["recorded_at"])
            erasure.act = act
            erasure.bytes_left = extent.erase(act, tokens=self.tokens)
            erasure.save(update_fields=["act", "bytes_left"])
            is_shown = any(summary.active for summary in extent.summaries)
            job_id = jobs.request(conversation_id=conversation.pk, reason=Reason.REDO) if is_shown else None
        self._remove_bytes(erasure)
        return ErasureResult(
            erasure_id=erasure.erasure_id,
            conversation_id=erasure.conversation_id,
            audit_id=act.pk,
            erased_at=act.recorded_at,
            message_count=len(extent.messages),
            summary_count=len(extent.summaries),
            file_count=len(extent.files),
            job_id=job_id,
        )

    def sweep(self) -> None:
        """Finish erasures that a crash or an unavailable storage interrupted.

        It removes the bytes of erased files. An erased summary may still be in the active context, as a placeholder. If
        it has sources that are not erased, a new summary is requested again, for one day after the erasure.
        """
        for erasure in Erasure.objects.exclude(bytes_left=[]).order_by("erasure_id"):
            self._remove_bytes(erasure)
        recent = Erasure.objects.filter(act__recorded_at__gt=self.now() - REQUESTED_FOR)
        shown = ContextItem.objects.filter(
            conversation_id__in=recent.values("conversation_id"), summary__erased_by__isnull=False
        )
        to_redo = {
            conversation_id
            for conversation_id, summary_id in shown.values_list("conversation_id", "summary_id")
            if summary_id is not None and has_text_left(summary_id)
        }
        for conversation_id in sorted(to_redo):
            jobs.request(conversation_id=conversation_id, reason=Reason.REDO)

    def _remove_bytes(self, erasure: Erasure) -> None:
        """Remove the bytes of erased files.

        Paths that fail stay on the list for the sweep.
        """
        left = []
        for path in erasure.bytes_left:
            try:
                remove_bytes_unless_needed(self.storage, path)
            except STORAGE_FAILURES as refusal:
                left.append(path)
                logger.error("erased_bytes_left", erasure_id=erasure.erasure_id, error=type(refusal).__name__)
        if left != erasure.bytes_left:
            Erasure.objects.filter(pk=erasure.pk).update(bytes_left=left)

    def _resolve_messages(
        self, conversation_id: int, from_seq: int | None, to_seq: int | None, message_ids: Sequence[int]
    ) -> list[int]:
        own = Message.objects.filter(conversation_id=conversation_id)
        found = set(own.filter(pk__in=list(message_ids)).values_list("pk", flat=True))
        for message_id in message_ids:
            if message_id not in found:
                raise NotFound(f"There is no message msg_{message_id} in conversation {conversation_id}.")
        if (from_seq is None) != (to_seq is None):
            raise Invalid("A range needs both from_seq and to_seq.")
        if from_seq is not None and to_seq is not None:
            if from_seq > to_seq:
                raise Invalid(f"to_seq: {to_seq} is before from_seq, {from_seq}.")
            found |= set(own.filter(seq__range=(from_seq, to_seq)).values_list("pk", flat=True))
        return sorted(found)

    def _require_files(self, conversation_id: int, file_ids: Sequence[str]) -> None:
        for file_id in file_ids:
            if self.scope.file(file_id).conversation_id != conversation_id:
                raise NotFound(f"There is no file {file_id[:80]!r} in conversation {conversation_id}.")

    def _find_confirmed(self, erasure_id: str, confirmation: str) -> Erasure:
        erasure = self.scope.find(Erasure.objects.all(), "erasure", erasure_id, pk=erasure_id)
        self._require_open(erasure)
        if confirmation != erasure.confirmation:
            raise Invalid(
                "Nothing was erased: the confirmation is not the text that the preview shows. Type it exactly.",
                code="not_confirmed",
            )
        return erasure

    def _require_open(self, erasure: Erasure) -> None:
        if erasure.act_id is not None:
            raise Conflict(f"{erasure.erasure_id} was already carried out.", code="erasure_done")
        if erasure.expires_at <= self.now():
            raise Conflict("This preview has expired. Preview again.", code="erasure_expired")


def _nothing(conversation: Conversation, named: Sequence[int], file_ids: Sequence[str], *, is_whole: bool) -> str:
    """A sentence that says why there is nothing to erase."""
    if is_whole and conversation.next_seq == 1:
        return "Nothing is left to erase: the conversation has no messages and no files."
    if not is_whole and not named and not file_ids:
        last_seq = conversation.next_seq - 1
        return f"There are no messages in that range; the last message of the conversation has the seq {last_seq}."
    return "Nothing is left to erase here: it was already erased."


def _confirmation(extent: Extent) -> str:
    counts = {"message": len(extent.messages), "file": len(extent.files)}
    what = " and ".join(counted(count, noun) for noun, count in counts.items() if count)
    all_of_it = " (all of it)" if extent.is_whole else ""
    return f"erase {what} of conversation {extent.conversation_id}{all_of_it} for good"


def _figures(extent: Extent) -> dict[str, object]:
    first_seq, last_seq = extent.seqs
    return {
        "messages": len(extent.messages),
        "first_seq": first_seq,
        "last_seq": last_seq,
        "summaries": [summary.summary_id for summary in extent.summaries[:MOST_LISTED]],
        "summary_count": len(extent.summaries),
        "files": [file.file_id for file in extent.files],
    }


def _preview(erasure: Erasure, extent: Extent) -> ErasurePreview:
    first_seq, last_seq = extent.seqs
    return ErasurePreview(
        erasure_id=erasure.erasure_id,
        conversation_id=extent.conversation_id,
        is_whole=extent.is_whole,
        expires_at=erasure.expires_at,
        confirmation=erasure.confirmation,
        message_count=len(extent.messages),
        first_seq=first_seq,
        last_seq=last_seq,
        part_count=sum(message.part_count for message in extent.messages),
        token_count=sum(message.token_count for message in extent.messages),
        cold_messages=sum(message.cold_block_id is not None for message in extent.messages),
        summary_count=len(extent.summaries),
        summary_tokens=sum(summary.token_count for summary in extent.summaries),
        active_summaries=sum(summary.active for summary in extent.summaries),
        summaries=extent.summaries[:MOST_LISTED],
        files=extent.files,
        file_ids_kept=extent.file_ids_kept,
        texts_elsewhere=extent.texts_elsewhere(),
        copies_elsewhere=extent.copies_elsewhere(),
    )
