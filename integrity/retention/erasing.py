"""What an erasure takes, read anew each time, and its statements. The texts go; rows, places and hashes stay."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.db.models import F

from compaction.rendering import context_cost_of
from conversations.cold_storage.archiving import leave_out
from conversations.cold_storage.cold_texts import PART_TEXTS
from conversations.content.tokens import TokenEstimator
from conversations.models import AuditEntry, ContextItem, Conversation, MessagePart, Summary
from conversations.sql import array, rows
from integrity.models import RepairStep
from integrity.retention.types import ERASED_PART_NAMES, ErasedFile, ErasedSummary

_MESSAGES = """
    SELECT m.message_id, m.seq, m.token_count, encode(m.chain_hash, 'hex'), m.cold_block_id,
           (SELECT count(*) FROM message_parts p WHERE p.message_id = m.message_id)
    FROM messages m
    WHERE m.conversation_id = %s AND m.message_id = ANY(%s) AND m.erased_by_id IS NULL ORDER BY m.seq
"""
# All that was made from these messages, however far. What was superseded was made from them, too.
_SUMMARIES = """
    WITH RECURSIVE above AS (
        SELECT summary_id FROM summary_messages WHERE message_id = ANY(%s)
        UNION
        SELECT p.summary_id FROM above JOIN summary_parents p ON p.parent_summary_id = above.summary_id
    )
    SELECT s.summary_id, s.depth, s.first_seq, s.last_seq, s.token_count, c.summary_id IS NOT NULL
    FROM above JOIN summaries s USING (summary_id)
    LEFT JOIN context_items c ON c.summary_id = s.summary_id
    WHERE s.erased_by_id IS NULL
    ORDER BY s.first_seq, s.depth DESC, s.summary_id
"""
# The files that these messages hold or name, and whether any other message does that is not erased.
_FILES = """
    SELECT f.file_id, f.byte_size, f.storage_uri,
           EXISTS (
               SELECT FROM file_references other JOIN messages m USING (message_id)
               WHERE other.file_id = f.file_id AND m.message_id <> ALL(%(messages)s) AND m.erased_by_id IS NULL
           ),
           EXISTS (
               SELECT FROM large_files same
               WHERE same.storage_uri = f.storage_uri AND same.erased_by_id IS NULL
                 AND same.file_id <> f.file_id AND same.file_id <> ALL(%(files)s)
           )
    FROM large_files f
    WHERE f.conversation_id = %(id)s AND f.erased_by_id IS NULL
      AND (f.file_id = ANY(%(files)s)
           OR EXISTS (SELECT FROM file_references r WHERE r.file_id = f.file_id AND r.message_id = ANY(%(messages)s)))
    ORDER BY f.file_id
"""
_ERASE_MESSAGES = """
    UPDATE messages SET content = '', exact = NULL, metadata = '{}', author = NULL, idempotency_key = NULL,
                        cold_block_id = NULL, erased_by_id = %s
    WHERE message_id = ANY(%s)
"""
# A note of compaction's own holds two ids of ours.
_ERASE_PARTS = f"""
    UPDATE message_parts SET {", ".join(f"{name} = NULL" for name in (*PART_TEXTS, *ERASED_PART_NAMES))}
    WHERE message_id = ANY(%s) AND (part_type = 'compaction' AND is_synthetic AND is_ignored) IS NOT TRUE
"""
_ERASE_FILES = """
    UPDATE large_files SET file_name = NULL, mime_type = NULL, exploration_summary = NULL, erased_by_id = %s
    WHERE file_id = ANY(%s)
"""
# Whether another file needs them, is asked when this erasure and those beside it are committed.
_BYTES = "SELECT DISTINCT storage_uri FROM large_files WHERE file_id = ANY(%s) ORDER BY storage_uri"


@dataclass(frozen=True)
class Extent:
    """Everything that an erasure touches, as it is now."""

    conversation_id: int
    message_ids: tuple[int, ...]
    first_seq: int | None
    last_seq: int | None
    part_count: int
    token_count: int
    block_ids: tuple[int, ...]
    # Messages that are in these blocks.
    cold_messages: int
    summaries: tuple[ErasedSummary, ...]
    files: tuple[ErasedFile, ...]
    files_kept: tuple[str, ...]
    fingerprint: str

    @classmethod
    def of(cls, conversation_id: int, *, message_ids: Sequence[int], file_ids: Sequence[str]) -> Extent:
        """What erasing these messages and files takes along; what is erased already is passed over."""
        messages = rows(_MESSAGES, [conversation_id, array(message_ids)])
        ids = [row[0] for row in messages]
        summaries = tuple(ErasedSummary(*row) for row in rows(_SUMMARIES, [array(ids)]))
        values = {"id": conversation_id, "messages": ids, "files": list(file_ids)}
        files, kept = [], []
        for file_id, size, _, is_needed, is_shared in rows(_FILES, values):
            if is_needed and file_id not in file_ids:
                kept.append(file_id)
            else:
                files.append(ErasedFile(file_id, size, bytes_stay=is_shared))
        told = [
            [[message_id, seal, parts] for message_id, _, _, seal, _, parts in messages],
            [summary.summary_id for summary in summaries],
            [file.file_id for file in files],
        ]
        seqs = [row[1] for row in messages]
        blocks = [row[4] for row in messages if row[4] is not None]
        return cls(
            conversation_id=conversation_id,
            message_ids=tuple(ids),
            first_seq=min(seqs, default=None),
            last_seq=max(seqs, default=None),
            part_count=sum(row[5] for row in messages),
            token_count=sum(row[2] for row in messages),
            block_ids=tuple(sorted(set(blocks))),
            cold_messages=len(blocks),
            summaries=summaries,
            files=tuple(files),
            files_kept=tuple(kept),
            fingerprint=hashlib.sha256(json.dumps(told).encode()).hexdigest(),
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """Everything that goes, by the ids that others name it by."""
        return (
            *(f"msg_{message_id}" for message_id in self.message_ids),
            *(summary.summary_id for summary in self.summaries),
            *(file.file_id for file in self.files),
        )

    def erase(self, act: AuditEntry, *, tokens: TokenEstimator) -> list[str]:
        """Take all of it away, in the transaction of the act; where the bytes of its files lie.

        The caller holds the conversation's lock, and its row.
        """
        ids, file_ids = list(self.message_ids), [file.file_id for file in self.files]
        summary_ids = [summary.summary_id for summary in self.summaries]
        with connection.cursor() as cursor:
            cursor.execute(_ERASE_MESSAGES, [act.pk, ids])
            cursor.execute(_ERASE_PARTS, [ids])
            cursor.execute(_ERASE_FILES, [act.pk, file_ids])
        leave_out(self.conversation_id, message_ids=set(ids), block_ids=self.block_ids)
        Summary.objects.filter(pk__in=summary_ids).update(content="", erased_by=act)
        self._count_again(tokens)
        # A repair may hold a text that was put back, or that stood in its place.
        part_ids = MessagePart.objects.filter(message_id__in=ids).values_list("pk", flat=True)
        targets = [*(f"msg_{message_id}" for message_id in ids), *part_ids, *summary_ids, *file_ids]
        RepairStep.objects.filter(conversation_id=self.conversation_id, target__in=targets).update(
            before={}, after={}, undo=None
        )
        return [path for (path,) in rows(_BYTES, [file_ids])]

    def _count_again(self, tokens: TokenEstimator) -> None:
        """What the summaries that a model sees cost, now that a word stands for their texts."""
        cost_of = context_cost_of(tokens)
        shown = ContextItem.objects.filter(summary_id__in=[each.summary_id for each in self.summaries if each.active])
        costs = dict(shown.values_list("summary_id", "token_count"))
        for summary in Summary.objects.filter(pk__in=costs).readable():
            cost = cost_of(summary.as_record())
            shown.filter(summary_id=summary.pk).update(token_count=cost)
            Conversation.objects.filter(pk=self.conversation_id).update(
                active_tokens=F("active_tokens") - costs[summary.pk] + cost
            )
