"""Restore texts and rows from a ledger where stored hashes prove them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import F

from conversations.audit import Act, AuditLog
from conversations.content import hashing
from conversations.content.large_texts.file_references import FileEntry
from conversations.ledger.restoring import Restored, message_row, part_row
from conversations.models import ColdBlock, Conversation, FileReference, LargeFile, Message, Summary
from conversations.sql import load, rows
from conversations.store.messages import as_json
from conversations.store.read import files_of
from integrity.repairs.ledger_copies import LedgerCopy, Line
from integrity.repairs.repair_operation import CannotRepair, Operation, Target, Values
from integrity.repairs.repair_planning import Step

SQL = load("integrity/repairs.sql")
_OF_LINK = ("seq", "entry_hash", "metadata_hash", "record_hash", "created_at", "recorded_at", "chain_hash")


@dataclass(frozen=True)
class Found:
    """The lines of a ledger that match a target."""

    messages: Sequence[Line] = ()
    summary: Line | None = None


class RestoreFromLedger(Operation):
    """Restore altered texts or lost rows from ledger lines with matching hashes."""

    step = Step.RESTORE_FROM_LEDGER

    def state(self, target: Target) -> Values:
        if target.id.startswith("seq_"):
            return {"messages": Message.objects.filter(conversation_id=target.conversation, seq=target.number).count()}
        if target.id.startswith("sum_"):
            return {"hash": _digest(Summary.objects.get(pk=target.id).content)}
        message_id = self._message_id(target)
        return {
            "hash": _digest(_texts_of(message_id)),
            "parts": _digest(_parts_of(message_id)),
            "files": files_of([message_id]).get(message_id, []),
        }

    def outlook(self, target: Target) -> Values:
        found = self._found(target)
        if found.summary is not None:
            return {"summary_hash": found.summary["summary_hash"]}
        return {"messages": [{"seq": line["seq"], "entry_hash": line["entry_hash"]} for line in found.messages[:50]]}

    def is_reversible(self, target: Target) -> bool:
        """Whether no row was inserted, and no text was cold."""
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
            _write(self._message_id(target), undo["message"], undo["parts"])
        else:
            super().undo(target, undo, log)

    def _fill(self, target: Target, line: Line, audit_id: int) -> dict[str, Any]:
        """Write the original texts of a message and its parts, and insert missing parts."""
        message_id = self._message_id(target)
        undo = {"message": json.loads(_texts_of(message_id)), "parts": json.loads(_parts_of(message_id))}
        values = message_row(dict(line))
        texts = {name: values.get(name) for name in ("content", "exact", "author", "idempotency_key")}
        texts["metadata"] = json.dumps(values["metadata"] or {})
        parts = []
        for part in map(part_row, line["parts"]):
            as_texts = {
                name: json.dumps(part[name]) for name in ("tool_input", "metadata") if part.get(name) is not None
            }
            parts.append({**part, **as_texts, "part_id": f"part_{message_id}_{part['ordinal']}"})
        _write(message_id, texts, parts)
        inserted = self._insert_lost(target, message_id, line, audit_id)
        _leave_block(target.conversation, undo["message"]["cold_block_id"])
        return {**undo, "inserted_parts": inserted}

    def _insert(self, target: Target, lines: Sequence[Line], audit_id: int) -> None:
        """Insert lost messages, under their old ids where other rows name them."""
        for line in lines:
            message_id = _lost_number(target.conversation, line)
            if message_id is None:
                self._restored(target, audit_id).messages([dict(line)])
                message_id = Message.objects.get(conversation_id=target.conversation, seq=line["seq"]).pk
            else:
                row = as_json([message_row(dict(line))])
                values: dict[str, Any] = {"message_id": message_id, "conversation_id": target.conversation, "rows": row}
                with connection.cursor() as cursor:
                    cursor.execute(SQL["insert_numbered_message"], values)
            self._insert_lost(target, message_id, line, audit_id)

    def _insert_lost(self, target: Target, message_id: int, line: Line, audit_id: int) -> int:
        """Insert the parts and references that a message lacks; return their number."""
        present = {each["part_id"] for each in json.loads(_parts_of(message_id))}
        lost = [part for part in line["parts"] if f"part_{message_id}_{part['ordinal']}" not in present]
        if lost:
            self._restored(target, audit_id).parts([{**part, "seq": line["seq"]} for part in lost])
        lost_files = _lost_files(message_id, line)
        _restore_references(message_id, lost_files)
        return len(lost) + len(lost_files)

    def _restored(self, target: Target, audit_id: int) -> Restored:
        conversation = Conversation.objects.get(pk=target.conversation)
        return Restored(conversation.pk, conversation.workspace_id, conversation.session_id, audit_id)

    def _found(self, target: Target) -> Found:
        """Return the matching lines; CannotRepair if there are none."""
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
            [row] = rows(SQL["hashes_of_message"], [self._message_id(target)])
            seqs = range(row[0], row[0] + 1)
        found = copy.sealed_messages(seqs)
        lines = [found[seq] for seq in seqs if seq in found]
        if len(lines) < len(seqs) or not lines:
            raise CannotRepair(f"The ledger has no {target.id} that matches the stored hashes.")
        if row is not None and row != _hashes_in(lines[0]):
            raise CannotRepair(f"The stored hashes of {target.id} differ from those in the ledger.")
        if row is None:
            head = bytes(conversation.chain_head).hex()
            if not _fits_between(conversation.pk, lines, head):
                raise CannotRepair("The messages of the ledger do not follow from the stored ones.")
        return Found(messages=lines)

    def _message_id(self, target: Target) -> int:
        if target.id.startswith("part_"):
            [(message_id,)] = rows("SELECT message_id FROM message_parts WHERE part_id = %s", [target.id])
            return int(message_id)
        return target.number


def _lost_files(message_id: int, line: Line) -> list[FileEntry]:
    """Return the files of a ledger line that have no reference."""
    stored = files_of([message_id]).get(message_id, [])
    return [entry for entry in line.get("files", []) if entry not in stored]


def _restore_references(message_id: int, entries: Sequence[FileEntry]) -> None:
    """Write references to existing files; CannotRepair for a missing file."""
    known = {
        file_id: None if sha256 is None else bytes(sha256).hex()
        for file_id, sha256 in LargeFile.objects.filter(pk__in=[entry[0] for entry in entries]).values_list(
            "pk", "content_hash"
        )
    }
    for file_id, sha256, ordinal, field, start_at, length in entries:
        if file_id not in known or known[file_id] != sha256:
            raise CannotRepair(f"{file_id} is missing or altered: only a backup restores it.")
        FileReference.objects.create(
            message_id=message_id, file_id=file_id, part_ordinal=ordinal, field=field, start_at=start_at, length=length
        )


def _gap(conversation: Conversation, first: int) -> range:
    """Return the seqs of a gap, from its first missing message."""
    later = Message.objects.filter(conversation=conversation, seq__gte=first).order_by("seq")
    following = later.values_list("seq", flat=True).first()
    return range(first, conversation.next_seq if following is None else following)


def _hashes_in(line: Line) -> tuple[Any, ...]:
    names = ("seq", "role", "token_count", "chained_parts", "content_hash", "entry_hash", "record_hash", "chain_hash")
    # Messages stored before there were record hashes have none.
    return tuple(line.get(name) for name in names)


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


def _leave_block(conversation_id: int, block_id: int | None) -> None:
    """Count a restored message as hot, and delete its block if unused."""
    if block_id is not None:
        Conversation.objects.filter(pk=conversation_id).update(cold_messages=F("cold_messages") - 1)
        ColdBlock.objects.filter(pk=block_id, messages__isnull=True).delete()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _lost_number(conversation_id: int, line: Line) -> int | None:
    """Return the id of a lost message that links or context items still name."""
    place = {"conversation_id": conversation_id, "seq": line["seq"]}
    links = [
        {"summary_id": summary_id, "ordinal": line["seq"] - first}
        for summary_id, first in rows(SQL["leaves_over"], place)
    ]
    found = rows(SQL["lost_number"], {**place, "links": json.dumps(links)})
    return int(found[0][0]) if found else None


def _fits_between(conversation_id: int, lines: Sequence[Line], chain_head: str) -> bool:
    """Whether the lines fit the chain between their stored neighbours."""
    first, last = lines[0], lines[-1]
    link = {name: first.get(name) for name in _OF_LINK}
    [(follows,)] = rows(SQL["follows_predecessor"], {"conversation_id": conversation_id, **link})
    successor = {"conversation_id": conversation_id, "seq": last["seq"] + 1, "chain_hash": last["chain_hash"]}
    after = rows(SQL["successor_follows"], successor)
    return bool(follows) and bool(after[0][0] if after else chain_head == last["chain_hash"])
