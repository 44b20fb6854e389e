"""Restore texts and rows from a ledger, if the stored hashes prove them.

The target of a step is a message, one of its parts, a summary, or the first missing message of a gap (`seq_12`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection
from django.db.models import F

from conversations.audit import Act, AuditLog
from conversations.content import hashing
from conversations.content.large_texts.file_references import FileEntry
from conversations.content.lossless_values import as_json
from conversations.ledger.restoring import Restored, message_row, part_row
from conversations.ledger.types import Line
from conversations.models import ColdBlock, Conversation, FileReference, LargeFile, Message, Summary
from conversations.sql import load, rows
from conversations.store.read import files_of
from integrity.models import RepairStep
from integrity.repairs.ledger_copies import LedgerCopy, ledger_copy
from integrity.repairs.repair_operation import CannotRepair, Operation, Values

SQL = load("integrity/repairs.sql")
_OF_LINK = ("seq", "entry_hash", "metadata_hash", "record_hash", "created_at", "recorded_at", "chain_hash")
_OF_MESSAGE = ("seq", "role", "token_count", "chained_parts", "content_hash", "entry_hash", "record_hash", "chain_hash")


class RestoreFromLedger(Operation):
    """Restore altered texts or lost rows from ledger lines with matching hashes."""

    def state(self, step: RepairStep) -> Values:
        if step.target.startswith("seq_"):
            return {"messages": Message.objects.filter(conversation_id=step.of_conversation, seq=step.number).count()}
        if step.target.startswith("sum_"):
            return {"hash": _digest(Summary.objects.get(pk=step.target).content)}
        message_id = _message_id(step)
        return {
            "hash": _digest(_texts_of(message_id)),
            "parts": _digest(_parts_of(message_id)),
            "files": files_of([message_id]).get(message_id, []),
        }

    def outlook(self, step: RepairStep) -> Values:
        lines = _lines(step)
        if step.target.startswith("sum_"):
            return {"summary_hash": lines[0]["summary_hash"]}
        return {"messages": [{"seq": line["seq"], "entry_hash": line["entry_hash"]} for line in lines[:50]]}

    def is_reversible(self, step: RepairStep) -> bool:
        """Whether the step will insert no row, and restores no text of the cold tier."""
        if not step.target.startswith(("msg_", "part_")):
            return step.target.startswith("sum_")
        message = Message.objects.get(pk=_message_id(step))
        [line] = _lines(step)
        return (
            message.cold_block_id is None
            and message.parts.count() >= message.chained_parts
            and not _lost_files(message.pk, line)
        )

    def apply(self, step: RepairStep, log: AuditLog) -> Values:
        lines = _lines(step)
        act = log.record(Act.RESTORE, conversation_id=step.conversation_id, target=step.target)
        if step.target.startswith("sum_"):
            summary = Summary.objects.filter(pk=step.target)
            undo = {"content": summary.get().content}
            summary.update(content=lines[0]["content"])
            return undo
        conversation = Conversation.objects.get(pk=step.of_conversation)
        restored = Restored(conversation.pk, conversation.workspace_id, conversation.session_id, act.pk)
        if step.target.startswith("seq_"):
            for line in lines:
                _insert(line, restored)
            return {}
        return _fill(_message_id(step), lines[0], restored)

    def undo(self, step: RepairStep, undo: Values, log: AuditLog) -> None:
        if "content" not in undo and ("message" not in undo or undo["inserted_parts"]):
            super().undo(step, undo, log)
        log.record(Act.RESTORE, conversation_id=step.conversation_id, target=step.target, detail={"undone": True})
        if "content" in undo:
            Summary.objects.filter(pk=step.target).update(content=undo["content"])
        else:
            _write(_message_id(step), undo["message"], undo["parts"])


def _lines(step: RepairStep) -> list[Line]:
    """Return the ledger lines for the target; CannotRepair if they prove nothing."""
    if not step.plan.ledger_file_id:
        raise CannotRepair("There is no ledger to restore from.")
    conversation = Conversation.objects.get(pk=step.of_conversation)
    copy = ledger_copy(step.plan.ledger_file_id, conversation.session_id)
    if step.target.startswith("sum_"):
        return [_fitting_summary(step.target, copy)]
    is_gap = step.target.startswith("seq_")
    hashes = () if is_gap else rows(SQL["hashes_of_message"], [_message_id(step)])[0]
    seqs = _seqs_of_gap(conversation, step.number) if is_gap else range(hashes[0], hashes[0] + 1)
    lines = copy.sealed_messages(seqs)
    if len(lines) < len(seqs) or not lines:
        raise CannotRepair(f"The ledger has no {step.target} that matches the stored hashes.")
    # `.get`, because messages from older versions of LCM have no record hash.
    if hashes and hashes != tuple(lines[0].get(name) for name in _OF_MESSAGE):
        raise CannotRepair(f"The stored hashes of {step.target} differ from those in the ledger.")
    if is_gap and not _fits_between(conversation, lines):
        raise CannotRepair("The messages of the ledger do not follow from the stored ones.")
    return lines


def _message_id(step: RepairStep) -> int:
    if step.target.startswith("part_"):
        [(message_id,)] = rows("SELECT message_id FROM message_parts WHERE part_id = %s", [step.target])
        return int(message_id)
    return step.number


def _fill(message_id: int, line: Line, restored: Restored) -> dict[str, Any]:
    """Write the original texts of a message and its parts, and insert missing parts."""
    undo = {"message": json.loads(_texts_of(message_id)), "parts": json.loads(_parts_of(message_id))}
    values = message_row(line)
    texts = {name: values.get(name) for name in ("content", "exact", "author", "idempotency_key")}
    texts["metadata"] = json.dumps(values["metadata"] or {})
    parts = []
    for part in map(part_row, line["parts"]):
        as_texts = {name: json.dumps(part[name]) for name in ("tool_input", "metadata") if part.get(name) is not None}
        parts.append({**part, **as_texts, "part_id": f"part_{message_id}_{part['ordinal']}"})
    _write(message_id, texts, parts)
    inserted = _insert_lost(message_id, line, restored)
    if block_id := undo["message"]["cold_block_id"]:
        # A restored message is in the hot tier. Its cold block is deleted if no other message uses it.
        Conversation.objects.filter(pk=restored.conversation_id).update(cold_messages=F("cold_messages") - 1)
        ColdBlock.objects.filter(pk=block_id, messages__isnull=True).delete()
    return {**undo, "inserted_parts": inserted}


def _insert(line: Line, restored: Restored) -> None:
    """Insert a lost message; keep its old id if other rows refer to it."""
    place = {"conversation_id": restored.conversation_id, "seq": line["seq"]}
    if named := rows(SQL["lost_number"], place):
        message_id = int(named[0][0])
        values: dict[str, Any] = {**place, "message_id": message_id, "rows": as_json([message_row(line)])}
        with connection.cursor() as cursor:
            cursor.execute(SQL["insert_numbered_message"], values)
    else:
        restored.messages([line])
        message_id = Message.objects.get(**place).pk
    _insert_lost(message_id, line, restored)


def _insert_lost(message_id: int, line: Line, restored: Restored) -> int:
    """Insert the missing parts and file references of a message; return their number."""
    present = {each["part_id"] for each in json.loads(_parts_of(message_id))}
    lost = [part for part in line["parts"] if f"part_{message_id}_{part['ordinal']}" not in present]
    restored.parts([{**part, "seq": line["seq"]} for part in lost])
    lost_files = _lost_files(message_id, line)
    for file_id, sha256, ordinal, field, start_at, length in lost_files:
        content_hash = None if sha256 is None else bytes.fromhex(sha256)
        if not LargeFile.objects.filter(pk=file_id, content_hash=content_hash).exists():
            raise CannotRepair(f"{file_id} is missing or altered: only a backup restores it.")
        FileReference.objects.create(
            message_id=message_id, file_id=file_id, part_ordinal=ordinal, field=field, start_at=start_at, length=length
        )
    return len(lost) + len(lost_files)


def _lost_files(message_id: int, line: Line) -> list[FileEntry]:
    """Return the file entries of a ledger line for which no reference is stored."""
    stored = files_of([message_id]).get(message_id, [])
    return [entry for entry in line.get("files", []) if entry not in stored]


def _seqs_of_gap(conversation: Conversation, first: int) -> range:
    """Return the seqs of a gap whose first missing message is `first`."""
    later = Message.objects.filter(conversation=conversation, seq__gte=first).order_by("seq")
    following = later.values_list("seq", flat=True).first()
    return range(first, conversation.next_seq if following is None else following)


def _fits_between(conversation: Conversation, lines: Sequence[Line]) -> bool:
    """Whether the lines form a chain with the stored messages before and after them."""
    first, last = lines[0], lines[-1]
    link = {name: first.get(name) for name in _OF_LINK}
    [(follows,)] = rows(SQL["follows_predecessor"], {"conversation_id": conversation.pk, **link})
    successor = {"conversation_id": conversation.pk, "seq": last["seq"] + 1, "chain_hash": last["chain_hash"]}
    after = rows(SQL["successor_follows"], successor)
    ends_well = after[0][0] if after else bytes(conversation.chain_head).hex() == last["chain_hash"]
    return bool(follows and ends_well)


def _fitting_summary(summary_id: str, copy: LedgerCopy) -> Line:
    line = copy.summary(summary_id)
    summary = Summary.objects.get(pk=summary_id)
    hashes = [hash for (hash,) in rows(SQL["source_hashes"], {"id": summary_id})]
    if line is None or hashing.summary_hash(hashes, line["content"]) != bytes(summary.summary_hash):
        raise CannotRepair(f"The ledger has no {summary_id} that matches the stored hash.")
    return line


def _texts_of(message_id: int) -> str:
    return str(rows(SQL["texts_of_message"], [message_id])[0][0])


def _parts_of(message_id: int) -> str:
    return str(rows(SQL["texts_of_parts"], [message_id])[0][0])


def _write(message_id: int, texts: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SQL["fill_message"], [json.dumps(texts), message_id])
        cursor.execute(SQL["fill_parts"], [json.dumps(parts, default=str)])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
