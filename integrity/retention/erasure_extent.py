"""Compute what an erasure removes, and remove it.

Only texts are removed. Rows, their positions (`seq`) and their hashes stay.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from django.db import connection
from django.db.models import F

from compaction.rendering import context_cost_of
from conversations.cold_storage.archiving import repack_without
from conversations.content.tokens import TokenEstimator
from conversations.models import AuditEntry, ContextItem, Conversation, LargeFile, Message, MessagePart, Summary
from conversations.sql import array, first_row, load, rows
from integrity.models import RepairStep
from integrity.retention.types import CopiesElsewhere, ErasedFile, ErasedSummary, TextElsewhere

SQL = load("integrity/erasure.sql")
# Another file may share these bytes. `remove_bytes_unless_needed` checks that later, when this erasure is committed.
_PATHS = "SELECT DISTINCT storage_uri FROM large_files WHERE file_id = ANY(%s) ORDER BY storage_uri"

_ERASE_OF_A_WHOLE_CONVERSATION = (
    "erase_conversation_labels",
    "erase_boundary_metadata",
    "erase_journal",
    "erase_plan_instructions",
    "erase_repair_steps",
)
_ERASE_OF_NAMED_ITEMS = ("erase_quarantine_reasons", "erase_grant_questions", "erase_upload_labels", "erase_map_runs")

# Other texts that may quote the erased ones: those erased only with a whole conversation, and those always erased.
_ERASED_WITH_ALL = (
    "title of the conversation",
    "metadata of the conversation",
    "summary_instructions of the conversation",
    "summary_instructions kept with a plan",
    "metadata of a boundary",
    "entry of the host's journal",
)
_ALWAYS_ERASED = (
    "session, arc or epoch summary",
    "reason of a quarantine",
    "question of a grant",
    "file name of an upload",
    "map run over a file",
)


class ErasedMessage(NamedTuple):
    """A message that the erasure removes."""

    message_id: int
    seq: int
    token_count: int
    chain_hash: str
    cold_block_id: int | None
    part_count: int


@dataclass(frozen=True)
class Extent:
    """Everything that an erasure would remove from the current rows."""

    conversation_id: int
    is_whole: bool
    messages: tuple[ErasedMessage, ...]
    summaries: tuple[ErasedSummary, ...]
    files: tuple[ErasedFile, ...]
    file_ids_kept: tuple[str, ...]
    # The number of files that map runs made from these files and stored in other conversations. They are not erased.
    written_elsewhere: int

    @classmethod
    def of(cls, conversation_id: int, message_ids: Sequence[int], file_ids: Sequence[str], *, is_whole: bool) -> Self:
        """Find everything that erasing these messages and files removes.

        With `is_whole`, the erasure covers the whole conversation. Items that are already erased are left out.
        """
        if is_whole:
            own = {"conversation_id": conversation_id, "erased_by": None}
            message_ids = list(Message.objects.filter(**own).values_list("pk", flat=True))
            file_ids = list(LargeFile.objects.filter(**own).values_list("pk", flat=True))
        found = rows(SQL["messages_to_erase"], [conversation_id, array(message_ids)])
        messages = tuple(ErasedMessage(*row) for row in found)
        ids = [message.message_id for message in messages]
        files, kept = _files(conversation_id, ids, file_ids)
        values = {"id": conversation_id, "files": [each.file_id for each in files]}
        written = rows(SQL["outputs_of_map_runs"], values)
        if written_here := [file_id for file_id, is_here in written if is_here]:
            files, kept = _files(conversation_id, ids, [*file_ids, *written_here])
        return cls(
            conversation_id=conversation_id,
            is_whole=is_whole,
            messages=messages,
            summaries=tuple(ErasedSummary(*row) for row in rows(SQL["summaries_to_erase"], [array(ids)])),
            files=tuple(files),
            file_ids_kept=tuple(kept),
            written_elsewhere=len(written) - len(written_here),
        )

    @property
    def fingerprint(self) -> str:
        """A hash of everything that would be removed."""
        contents = [
            [[each.message_id, each.chain_hash, each.part_count] for each in self.messages],
            [summary.summary_id for summary in self.summaries],
            [file.file_id for file in self.files],
        ]
        return hashlib.sha256(json.dumps(contents).encode()).hexdigest()

    @property
    def seqs(self) -> tuple[int | None, int | None]:
        """The first and the last erased seq; (None, None) if no message is erased."""
        return (self.messages[0].seq, self.messages[-1].seq) if self.messages else (None, None)

    @property
    def ids(self) -> list[str]:
        """The ids of all messages, summaries and files to erase."""
        return [
            *(f"msg_{message.message_id}" for message in self.messages),
            *(summary.summary_id for summary in self.summaries),
            *(file.file_id for file in self.files),
        ]

    def erase(self, act: AuditEntry, *, tokens: TokenEstimator) -> list[str]:
        """Remove all of it, and return the storage paths of the erased files.

        The caller holds the compaction lock of the conversation, and a lock on its row.
        """
        ids = [message.message_id for message in self.messages]
        blocks = {message.cold_block_id for message in self.messages if message.cold_block_id is not None}
        file_ids = [file.file_id for file in self.files]
        with connection.cursor() as cursor:
            cursor.execute(SQL["erase_messages"], [act.pk, ids])
            cursor.execute(SQL["erase_parts"], [ids])
            cursor.execute(SQL["erase_files"], [act.pk, file_ids])
        repack_without(self.conversation_id, message_ids=set(ids), block_ids=blocks)
        Summary.objects.filter(pk__in=[each.summary_id for each in self.summaries]).update(content="", erased_by=act)
        with connection.cursor() as cursor:
            for name in ("hold_project", "erase_history"):
                cursor.execute(SQL[name], {**self._values(), "act": act.pk})
        self._recount(tokens)
        # A repair step may hold a text that it restored or replaced.
        part_ids = MessagePart.objects.filter(message_id__in=ids).values_list("pk", flat=True)
        RepairStep.objects.filter(conversation_id=self.conversation_id, target__in=[*self.ids, *part_ids]).update(
            before={}, after={}, undo=None
        )
        with connection.cursor() as cursor:
            for name in (*(_ERASE_OF_A_WHOLE_CONVERSATION if self.is_whole else ()), *_ERASE_OF_NAMED_ITEMS):
                cursor.execute(SQL[name], {**self._values(), "act": act.pk})
        return [path for (path,) in rows(_PATHS, [file_ids])]

    def texts_elsewhere(self) -> tuple[TextElsewhere, ...]:
        """Find other texts that may quote the erased ones."""
        counts = first_row(SQL["texts_elsewhere"], self._values())
        assert counts is not None, "the conversation is there"
        erased = {*_ALWAYS_ERASED, *(_ERASED_WITH_ALL if self.is_whole else ())}
        return tuple(TextElsewhere(what, count, what in erased) for what, count in counts.items() if count)

    def copies_elsewhere(self) -> tuple[CopiesElsewhere, ...]:
        """Find other conversations with the same texts, the most copies first."""
        return tuple(CopiesElsewhere(*row) for row in rows(SQL["copies_elsewhere"], self._values()))

    def _values(self) -> dict[str, Any]:
        return {
            "conversation": self.conversation_id,
            "whole": self.is_whole,
            "ids": self.ids,
            "written_elsewhere": self.written_elsewhere,
        }

    def _recount(self, tokens: TokenEstimator) -> None:
        """Recount the erased summaries in the context, which now shows placeholders."""
        cost_of = context_cost_of(tokens)
        shown = ContextItem.objects.filter(summary_id__in=[each.summary_id for each in self.summaries if each.active])
        costs = dict(shown.values_list("summary_id", "token_count"))
        for summary in Summary.objects.filter(pk__in=costs).readable():
            cost = cost_of(summary.as_record())
            shown.filter(summary_id=summary.pk).update(token_count=cost)
            Conversation.objects.filter(pk=self.conversation_id).update(
                active_tokens=F("active_tokens") - costs[summary.pk] + cost
            )


def _files(
    conversation_id: int, message_ids: Sequence[int], file_ids: Sequence[str]
) -> tuple[list[ErasedFile], list[str]]:
    """Return the files to erase, and the ids of files to keep for other messages."""
    files, kept = [], []
    values = {"id": conversation_id, "messages": list(message_ids), "files": list(file_ids)}
    for file_id, size, is_needed, is_shared in rows(SQL["files_to_erase"], values):
        if is_needed and file_id not in file_ids:
            kept.append(file_id)
        else:
            files.append(ErasedFile(file_id, size, bytes_stay=is_shared))
    return files, kept
