"""Check the messages of a ledger and their parts against their hashes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from conversations.content import hashing
from conversations.content.large_texts.file_references import misplaced
from conversations.ledger.line_shapes import actor_of, kind_of
from conversations.ledger.lines import as_moment, microseconds
from conversations.ledger.types import Findings
from conversations.ledger.verification_memory import Remembered, VerificationMemory


@dataclass
class MessageCheck:
    """Checks the messages of one conversation, in order."""

    findings: Findings
    memory: VerificationMemory
    last_seq: int = 0
    tokens: int = 0
    chain_hash: str = ""
    recorded_at: str = ""
    # Of the last message with added parts: its seq, and the next ordinal.
    _parts_of: tuple[int, int] = field(default=(0, 0))

    def message(self, line: Mapping[str, Any]) -> None:
        """Check a message, and that it follows from the one before it."""
        self._sequence(line)
        self._own_hashes(line)
        self._record(line)
        self._chain(line)
        self.tokens += line["token_count"]
        key = line["idempotency_key"]
        self.findings.require(
            key is None or self.memory.take_key(key),
            "duplicate_idempotency_key",
            f"message {line['seq']} has the idempotency key of another message",
        )
        self.memory.put(
            line["seq"],
            Remembered(
                content_hash=line["content_hash"],
                event_id=line["event_id"],
                created_at=microseconds(as_moment(line["created_at"])),
                token_count=line["token_count"],
                chained_parts=line["chained_parts"],
                is_erased=line["erased"],
            ),
        )
        self.last_seq = max(self.last_seq, line["seq"])
        self.chain_hash, self.recorded_at = line["chain_hash"], line["recorded_at"]

    def part(self, line: Mapping[str, Any]) -> None:
        """Check a part that was added to a message later."""
        seq, before = line["seq"], self.memory.get(line["seq"])
        if before is None:
            self.findings.add("unknown_message", f"there is no message {seq} for this part")
            return
        expected = self._parts_of[1] if self._parts_of[0] == seq else before.chained_parts
        self.findings.require(
            seq >= self._parts_of[0] and line["ordinal"] == expected,
            "parts_incomplete",
            f"message {seq}: part {line['ordinal']} is in the place of part {expected}",
        )
        self._parts_of = (seq, line["ordinal"] + 1)
        self._part_hash({name: line[name] for name in line if name not in ("type", "seq", "line_hash")}, before, seq)

    def _sequence(self, line: Mapping[str, Any]) -> None:
        seq, expected = line["seq"], self.last_seq + 1
        if seq > expected:
            self.findings.add("seq_gap", f"messages {expected} to {seq - 1} are missing")
        elif seq < expected:
            before = self.memory.get(seq)
            is_same = before is not None and before.event_id == line["event_id"]
            code = "duplicate_event_id" if is_same else "seq_out_of_order"
            self.findings.add(code, f"message {seq} is in the place of message {expected}")
        self.findings.require(
            line["recorded_at"] >= self.recorded_at,
            "time_goes_back",
            f"message {seq} was recorded before its predecessor",
        )

    def _own_hashes(self, line: Mapping[str, Any]) -> None:
        seq, parts = line["seq"], line["parts"]
        content = "" if line["content"] is None else line["content"]
        if line["erased"]:
            is_empty = line["content"] is None and line["metadata"] is None
            self.findings.require(is_empty, "erased_and_yet_there", f"message {seq} is erased but has texts")
        else:
            self.findings.require(
                line["content"] is not None and hashing.content_hash(content).hex() == line["content_hash"],
                "content_hash_mismatch",
                f"the content of message {seq} does not match its hash",
            )
            self.findings.require(
                line["metadata"] is not None and _hex(hashing.metadata_hash(line["metadata"])) == line["metadata_hash"],
                "metadata_hash_mismatch",
                f"the metadata of message {seq} does not match its hash",
            )
        self.findings.require(
            len(parts) == line["chained_parts"] and all(part["ordinal"] == n for n, part in enumerate(parts)),
            "parts_incomplete",
            f"message {seq} was appended with {line['chained_parts']} parts, not with these",
        )
        for part in parts:
            self._part_hash(part, line, seq)
        self._entry(line, parts)
        derived = kind_of(line["role"], parts), actor_of(line["role"], line["author"])
        if not line["erased"]:
            self.findings.require(
                (line["kind"], line["actor"]) == derived,
                "kind_mismatch",
                f"message {seq} is {derived[0]} by {derived[1]}",
            )

    def _part_hash(self, part: Mapping[str, Any], message: Mapping[str, Any] | Remembered, seq: int) -> None:
        is_erased = message.is_erased if isinstance(message, Remembered) else message["erased"]
        if is_erased:
            # Some values stay for the messages around it; the hash is that of the original.
            return
        values = {name: value for name, value in part.items() if name not in ("ordinal", "part_hash")}
        if "step_cost" in values:
            values["step_cost"] = Decimal(values["step_cost"])
        self.findings.require(
            hashing.part_hash(values).hex() == part["part_hash"],
            "part_hash_mismatch",
            f"part {part['ordinal']} of message {seq} does not match its hash",
        )

    def _entry(self, line: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> None:
        if line["erased"] and line["author"] is None:
            # The author may be erased as well: then only the chain seals the entry.
            return
        sealed = hashing.entry_hash(
            role=line["role"],
            author=line["author"],
            content=bytes.fromhex(line["content_hash"]),
            parts=[bytes.fromhex(part["part_hash"]) for part in parts],
        )
        self.findings.require(
            sealed.hex() == line["entry_hash"],
            "entry_hash_mismatch",
            f"role, author, content or parts of message {line['seq']} do not match its entry hash",
        )

    def _record(self, line: Mapping[str, Any]) -> None:
        """Check the record hash, and that files are in their places."""
        seq, parts = line["seq"], {part["ordinal"]: part for part in line["parts"]}
        for entry in line["files"]:
            self.memory.put_reference(seq, entry)
        if line["erased"]:
            return
        for entry in line["files"]:
            wrong = misplaced(entry, line["content"], parts)
            self.findings.require(not wrong, "reference_mismatch", f"message {seq}: {wrong}")
        if line["record_hash"] is None:
            # It was stored before there were record hashes.
            return
        given = [(part.get("tool_input"), part.get("metadata")) for part in line["parts"]]
        sealed = hashing.record_hash(
            idempotency_key=line["idempotency_key"],
            token_count=line["token_count"],
            token_counter=line["token_counter"],
            keys=hashing.key_order(line["metadata"] or {}, given),
            files=line["files"],
        )
        self.findings.require(
            sealed.hex() == line["record_hash"],
            "record_hash_mismatch",
            f"idempotency key, tokens, files or JSON key order of message {seq} do not match its record hash",
        )

    def _chain(self, line: Mapping[str, Any]) -> None:
        """Check against the recorded chain_hash, so that a broken link is one finding."""
        created_at, recorded_at = as_moment(line["created_at"]), as_moment(line["recorded_at"])
        link = hashlib.sha256(bytes.fromhex(self.chain_hash) + bytes.fromhex(line["entry_hash"]))
        for moment in (created_at, recorded_at):
            link.update(microseconds(moment).to_bytes(8, "big", signed=True))
        link.update(bytes.fromhex(line["metadata_hash"] or ""))
        if line["record_hash"] is not None:
            link.update(b"record:" + bytes.fromhex(line["record_hash"]))
        self.findings.require(
            link.hexdigest() == line["chain_hash"],
            "chain_broken",
            f"message {line['seq']} does not follow from its predecessor",
        )
        event_id = hashing.event_id(recorded_at=recorded_at, chain_hash=bytes.fromhex(line["chain_hash"]))
        self.findings.require(
            event_id == line["event_id"],
            "event_id_mismatch",
            f"the event_id of message {line['seq']} does not follow from its time and chain_hash",
        )


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
