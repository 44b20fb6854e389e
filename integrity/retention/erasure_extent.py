"""What an erasure reaches, computed anew each time.

Texts are removed; rows, places and hashes stay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import F

from compaction.rendering import context_cost_of
from conversations.cold_storage.archiving import leave_out
from conversations.content.tokens import TokenEstimator
from conversations.models import AuditEntry, ContextItem, Conversation, MessagePart, Summary
from conversations.sql import array, load, rows
from integrity.models import RepairStep
from integrity.retention.types import ErasedFile, ErasedSummary, TextElsewhere

SQL = load("integrity/erasure.sql")
# Whether another file needs these bytes is checked when this erasure and concurrent ones are committed.
_PATHS = "SELECT DISTINCT storage_uri FROM large_files WHERE file_id = ANY(%s) ORDER BY storage_uri"

_ERASE_OF_A_WHOLE_CONVERSATION = (
    "erase_conversation_labels",
    "erase_boundary_metadata",
    "erase_plan_instructions",
    "erase_repair_steps",
)
_ERASE_OF_NAMED_ITEMS = ("erase_quarantine_reasons", "erase_grant_questions", "erase_upload_labels")


@dataclass(frozen=True)
class Extent:
    """Everything that an erasure removes, as it is now."""

    conversation_id: int
    is_whole: bool
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
    file_ids_kept: tuple[str, ...]
    fingerprint: str

    @classmethod
    def of(
        cls, conversation_id: int, *, message_ids: Sequence[int], file_ids: Sequence[str], is_whole: bool = False
    ) -> Extent:
        """Find everything that erasing these messages and files removes.

        What is erased already is left out.
        """
        messages = rows(SQL["messages_to_erase"], [conversation_id, array(message_ids)])
        ids = [row[0] for row in messages]
        summaries = tuple(ErasedSummary(*row) for row in rows(SQL["summaries_to_erase"], [array(ids)]))
        files, kept = [], []
        named = {"id": conversation_id, "messages": ids, "files": list(file_ids)}
        for file_id, size, is_needed, is_shared in rows(SQL["files_to_erase"], named):
            if is_needed and file_id not in file_ids:
                kept.append(file_id)
            else:
                files.append(ErasedFile(file_id, size, bytes_stay=is_shared))
        fingerprinted = [
            [[message_id, chain_hash, parts] for message_id, _, _, chain_hash, _, parts in messages],
            [summary.summary_id for summary in summaries],
            [file.file_id for file in files],
        ]
        seqs = [row[1] for row in messages]
        blocks = [row[4] for row in messages if row[4] is not None]
        return cls(
            conversation_id=conversation_id,
            is_whole=is_whole,
            message_ids=tuple(ids),
            first_seq=min(seqs, default=None),
            last_seq=max(seqs, default=None),
            part_count=sum(row[5] for row in messages),
            token_count=sum(row[2] for row in messages),
            block_ids=tuple(sorted(set(blocks))),
            cold_messages=len(blocks),
            summaries=summaries,
            files=tuple(files),
            file_ids_kept=tuple(kept),
            fingerprint=hashlib.sha256(json.dumps(fingerprinted).encode()).hexdigest(),
        )

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all messages, summaries and files that are erased."""
        return (
            *(f"msg_{message_id}" for message_id in self.message_ids),
            *(summary.summary_id for summary in self.summaries),
            *(file.file_id for file in self.files),
        )

    def erase(self, act: AuditEntry, *, tokens: TokenEstimator) -> list[str]:
        """Remove all of it, and return the paths of its files' bytes.

        The caller holds the conversation's lock and its row.
        """
        ids, file_ids = list(self.message_ids), [file.file_id for file in self.files]
        summary_ids = [summary.summary_id for summary in self.summaries]
        with connection.cursor() as cursor:
            cursor.execute(SQL["erase_messages"], [act.pk, ids])
            cursor.execute(SQL["erase_parts"], [ids])
            cursor.execute(SQL["erase_files"], [act.pk, file_ids])
        leave_out(self.conversation_id, message_ids=set(ids), block_ids=self.block_ids)
        Summary.objects.filter(pk__in=summary_ids).update(content="", erased_by=act)
        self._recount(tokens)
        # A repair step may hold a text that it restored or replaced.
        part_ids = MessagePart.objects.filter(message_id__in=ids).values_list("pk", flat=True)
        RepairStep.objects.filter(conversation_id=self.conversation_id, target__in=[*self.ids, *part_ids]).update(
            before={}, after={}, undo=None
        )
        self._erase_elsewhere()
        return [path for (path,) in rows(_PATHS, [file_ids])]

    def texts_elsewhere(self) -> tuple[TextElsewhere, ...]:
        """Find other texts that may quote what is erased."""
        [counts] = rows(SQL["texts_elsewhere"], self._values())
        title, metadata, instructions, plans, of_boundaries, reasons, all_reasons, questions, *others = counts
        labels, unfinished, boundaries = others
        found = (
            TextElsewhere("title of the conversation", title, self.is_whole),
            TextElsewhere("metadata of the conversation", metadata, self.is_whole),
            TextElsewhere("summary_instructions of the conversation", instructions, self.is_whole),
            TextElsewhere("summary_instructions kept with a plan", plans, self.is_whole),
            TextElsewhere("metadata of a boundary", of_boundaries, self.is_whole),
            TextElsewhere("reason of a quarantine", reasons, True),
            TextElsewhere("reason of a quarantine of something else", all_reasons - reasons, False),
            TextElsewhere("question of a grant", questions, True),
            TextElsewhere("file name of an upload", labels, True),
            TextElsewhere("unfinished upload", unfinished, False),
            TextElsewhere("host_reference of a boundary", boundaries, False),
            TextElsewhere("session_id of the conversation", 1, False),
        )
        return tuple(each for each in found if each.count)

    def _erase_elsewhere(self) -> None:
        names = (*(_ERASE_OF_A_WHOLE_CONVERSATION if self.is_whole else ()), *_ERASE_OF_NAMED_ITEMS)
        with connection.cursor() as cursor:
            for name in names:
                cursor.execute(SQL[name], self._values())

    def _values(self) -> dict[str, Any]:
        return {"conversation": self.conversation_id, "whole": self.is_whole, "ids": list(self.ids)}

    def _recount(self, tokens: TokenEstimator) -> None:
        """Update the context costs of erased summaries, now shown as placeholders."""
        cost_of = context_cost_of(tokens)
        shown = ContextItem.objects.filter(summary_id__in=[each.summary_id for each in self.summaries if each.active])
        costs = dict(shown.values_list("summary_id", "token_count"))
        for summary in Summary.objects.filter(pk__in=costs).readable():
            cost = cost_of(summary.as_record())
            shown.filter(summary_id=summary.pk).update(token_count=cost)
            Conversation.objects.filter(pk=self.conversation_id).update(
                active_tokens=F("active_tokens") - costs[summary.pk] + cost
            )
