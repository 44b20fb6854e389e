"""Texts and rows that were damaged or lost, put back from a ledger: what a seal proves, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection

from conversations.audit import Act, AuditLog
from conversations.content import hashing
from conversations.content.large_texts.file_references import FileEntry
from conversations.ledger.restoring import Restored, message_row, part_row
from conversations.models import Conversation, FileReference, LargeFile, Message, Summary
from conversations.sql import rows
from conversations.store.append import as_json
from conversations.store.read import files_of
from integrity.repairs.ledger_copies import LedgerCopy, Line
from integrity.repairs.operations.ledger_rows import (
    AS_JSON,
    NUMBERED,
    SEALED,
    SOURCE_HASHES,
    digest,
    fits_between,
    leave_block,
    lost_number,
    parts_of,
    texts_of,
    write,
)
from integrity.repairs.operations.operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step


@dataclass(frozen=True)
class Found:
    """The lines of a ledger that fit a target."""

    messages: Sequence[Line] = ()
    summary: Line | None = None


class RestoreFromLedger(Operation):
    """Puts back the text of a row that is not what was sealed, or rows that are gone, if the ledger's fit the seals."""

    step = Step.RESTORE_FROM_LEDGER

    def state(self, target: Target) -> Values:
        if target.id.startswith("seq_"):
            return {"messages": Message.objects.filter(conversation_id=target.conversation, seq=target.number).count()}
        if target.id.startswith("sum_"):
            return {"hash": digest(Summary.objects.get(pk=target.id).content)}
        message_id = self._message_id(target)
        return {
            "hash": digest(texts_of(message_id)),
            "parts": digest(parts_of(message_id)),
            "files": files_of([message_id]).get(message_id, []),
        }

    def outlook(self, target: Target) -> Values:
        found = self._found(target)
        if found.summary is not None:
            return {"summary_hash": found.summary["summary_hash"]}
        return {"messages": [{"seq": line["seq"], "entry_hash": line["entry_hash"]} for line in found.messages[:50]]}

    def is_reversible(self, target: Target) -> bool:
        """What is put in cannot be taken out again, and a text that was cold does not go back into its block."""
        if not target.id.startswith(("msg_", "part_")):
            return target.id.startswith("sum_")
        message = Message.objects.get(pk=self._message_id(target))
        [line] = self._found(target).messages
        return (
            message.cold_block_id is None
            and message.parts.count() >= message.chained_parts
            and not _lost_files(message.pk, line)
        )

    def apply(self, target: Target, log: AuditLog) -> Values:
        found = self._found(target)
        act = log.record(Act.RESTORE, conversation_id=target.conversation, target=target.id)
        if found.summary is not None:
            undo = {"content": Summary.objects.get(pk=target.id).content}
            Summary.objects.filter(pk=target.id).update(content=found.summary["content"])
            return undo
        if target.id.startswith("seq_"):
            self._insert(target, found.messages, act.audit_id)
            return {}
        return self._fill(target, found.messages[0], act.audit_id)

    def undo(self, target: Target, undo: Values, log: AuditLog) -> None:
        if "content" in undo:
            log.record(Act.RESTORE, conversation_id=target.conversation, target=target.id, detail={"undone": True})
            Summary.objects.filter(pk=target.id).update(content=undo["content"])
        elif "message" in undo and not undo["inserted_parts"]:
            log.record(Act.RESTORE, conversation_id=target.conversation, target=target.id, detail={"undone": True})
            write(self._message_id(target), undo["message"], undo["parts"])
        else:
            super().undo(target, undo, log)

    def _fill(self, target: Target, line: Line, audit_id: int) -> dict[str, Any]:
        """The texts of a message and its parts as they were said; what is missing of its parts is put back."""
        message_id = self._message_id(target)
        undo = {"message": json.loads(texts_of(message_id)), "parts": json.loads(parts_of(message_id))}
        values = message_row(dict(line))
        texts = {name: values.get(name) for name in ("content", "exact", "author", "idempotency_key")}
        texts["metadata"] = json.dumps(values["metadata"] or {})
        parts = []
        for part in map(part_row, line["parts"]):
            as_texts = {name: json.dumps(part[name]) for name in AS_JSON if part.get(name) is not None}
            parts.append({**part, **as_texts, "part_id": f"part_{message_id}_{part['ordinal']}"})
        write(message_id, texts, parts)
        kept = {each["part_id"] for each in undo["parts"]}
        lost = [part for part in line["parts"] if f"part_{message_id}_{part['ordinal']}" not in kept]
        self._restored(target, audit_id).parts([{**part, "seq": line["seq"]} for part in lost])
        lost_files = _lost_files(message_id, line)
        _restore_references(message_id, lost_files)
        leave_block(target.conversation, undo["message"]["cold_block_id"])
        return {**undo, "inserted_parts": len(lost) + len(lost_files)}

    def _insert(self, target: Target, lines: Sequence[Line], audit_id: int) -> None:
        """Messages that are gone, under the numbers that other rows still name them by, where there are such."""
        restored = self._restored(target, audit_id)
        for line in lines:
            number = lost_number(target.conversation, line)
            if number is None:
                restored.messages([dict(line)])
                message = Message.objects.get(conversation_id=target.conversation, seq=line["seq"])
                _restore_references(message.pk, _lost_files(message.pk, line))
                continue
            with connection.cursor() as cursor:
                # The identity column would take the next number; the statement names the one that was lost.
                cursor.execute(NUMBERED, {"message_id": number, "conversation_id": target.conversation,
                                           "rows": as_json([message_row(dict(line))])})  # fmt: skip
            kept = {each["part_id"] for each in json.loads(parts_of(number))}
            lost = [part for part in line["parts"] if f"part_{number}_{part['ordinal']}" not in kept]
            restored.parts([{**part, "seq": line["seq"]} for part in lost])
            _restore_references(number, _lost_files(number, line))

    def _restored(self, target: Target, audit_id: int) -> Restored:
        conversation = Conversation.objects.get(pk=target.conversation)
        return Restored(conversation.pk, conversation.workspace_id, conversation.session_id, audit_id)

    def _found(self, target: Target) -> Found:
        """The lines that fit; CannotRepair if there are none."""
        if not target.ledger_file_id:
            raise CannotRepair("There is no ledger to restore from.")
        conversation = Conversation.objects.get(pk=target.conversation)
        copy = LedgerCopy.of(target.ledger_file_id, session_id=conversation.session_id)
        if target.id.startswith("sum_"):
            return Found(summary=_fitting_summary(target.id, copy))
        row = None
        if target.id.startswith("seq_"):
            seqs = _gap(conversation, target.number)
        else:
            [row] = rows(SEALED, [self._message_id(target)])
            seqs = range(row[0], row[0] + 1)
        found = copy.sealed_messages(seqs)
        lines = [found[seq] for seq in seqs if seq in found]
        if len(lines) < len(seqs) or not lines:
            raise CannotRepair(f"The ledger does not have {target.id}, or not as it was sealed.")
        if row is not None and row != _sealed_in(lines[0]):
            raise CannotRepair(f"The seals of {target.id} are not those of the ledger.")
        if row is None:
            head = bytes(conversation.chain_head).hex()
            if not fits_between(conversation.pk, lines, head):
                raise CannotRepair("The messages of the ledger do not follow from those that are there.")
        return Found(messages=lines)

    def _message_id(self, target: Target) -> int:
        if target.id.startswith("part_"):
            [(message_id,)] = rows("SELECT message_id FROM message_parts WHERE part_id = %s", [target.id])
            return int(message_id)
        return target.number


def _lost_files(message_id: int, line: Line) -> list[FileEntry]:
    """The files that the line says the message needs, and that no reference names any more."""
    there = files_of([message_id]).get(message_id, [])
    return [entry for entry in line.get("files", []) if entry not in there]


def _restore_references(message_id: int, entries: Sequence[FileEntry]) -> None:
    """Write references to files that are there; CannotRepair for a file that is gone."""
    known = {
        file_id: None if sha256 is None else bytes(sha256).hex()
        for file_id, sha256 in LargeFile.objects.filter(pk__in=[entry[0] for entry in entries]).values_list(
            "pk", "content_hash"
        )
    }
    for file_id, sha256, ordinal, field, start_at, length in entries:
        if file_id not in known or known[file_id] != sha256:
            raise CannotRepair(f"{file_id} is not there as it was: only a backup brings it back.")
        FileReference.objects.create(
            message_id=message_id, file_id=file_id, part_ordinal=ordinal, field=field, start_at=start_at, length=length
        )


def _gap(conversation: Conversation, first: int) -> range:
    """The seqs from the first that is missing to the last before the next message that is there."""
    later = Message.objects.filter(conversation=conversation, seq__gte=first).order_by("seq")
    following = later.values_list("seq", flat=True).first()
    return range(first, conversation.next_seq if following is None else following)


def _sealed_in(line: Line) -> tuple[Any, ...]:
    names = ("seq", "role", "token_count", "chained_parts", "content_hash", "entry_hash", "record_hash", "chain_hash")
    # A ledger of version 1 has no record_hash, and neither have its messages.
    return tuple(line.get(name) for name in names)


def _fitting_summary(summary_id: str, copy: LedgerCopy) -> Line:
    line = copy.summary(summary_id)
    summary = Summary.objects.get(pk=summary_id)
    hashes = [hash for (hash,) in rows(SOURCE_HASHES, {"id": summary_id})]
    if line is None or hashing.summary_hash(hashes, line["content"]) != bytes(summary.summary_hash):
        raise CannotRepair(f"The ledger does not have {summary_id} as it was sealed.")
    return line
