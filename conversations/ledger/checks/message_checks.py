"""Whether the messages of a ledger, and their parts, are what their hashes say."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from conversations.content import hashing
from conversations.content.large_texts.file_references import misplaced
from conversations.ledger.checks.findings import Findings
from conversations.ledger.checks.verification_memory import MessageMemory, ReferenceMemory, Remembered
from conversations.ledger.entry_kinds import actor_of, kind_of
from conversations.ledger.lines import as_moment, microseconds


@dataclass
class MessageCheck:
    """The messages of one conversation, in the order in which they come."""

    findings: Findings
    memory: MessageMemory
    references: ReferenceMemory
    last_seq: int = 0
    tokens: int = 0
    chain_hash: str = ""
    recorded_at: str = ""
    # Of the message that was last given parts later: its seq, and the ordinal that comes next.
    _parts_of: tuple[int, int] = field(default=(0, 0))

    def message(self, line: Mapping[str, Any]) -> None:
        """One more message: alone, and behind the one before it."""
        self._sequence(line)
        self._own_hashes(line)
        self._record(line)
        self._chain(line)
        self.tokens += line["token_count"]
        key = line["idempotency_key"]
        self._require(
            key is None or self.memory.take_key(key),
            "duplicate_idempotency_key",
            f"message {line['seq']} has the idempotency key of another one",
        )
        self.memory.put(
            line["seq"],
            Remembered(
                content_hash=bytes.fromhex(line["content_hash"]),
                event_id=line["event_id"].encode("ascii"),
                created_at=microseconds(as_moment(line["created_at"])),
                token_count=line["token_count"],
                chained_parts=line["chained_parts"],
                is_erased=line["erased"],
            ),
        )
        self.last_seq = max(self.last_seq, line["seq"])
        self.chain_hash, self.recorded_at = line["chain_hash"], line["recorded_at"]

    def part(self, line: Mapping[str, Any]) -> None:
        """A part that a message was given later."""
        seq, before = line["seq"], self.memory.get(line["seq"])
        if before is None:
            self.findings.add("unknown_message", f"there is no message {seq} for this part")
            return
        expected = self._parts_of[1] if self._parts_of[0] == seq else before.chained_parts
        self._require(
            seq >= self._parts_of[0] and line["ordinal"] == expected,
            "parts_incomplete",
            f"message {seq}: part {line['ordinal']} stands where part {expected} should",
        )
        self._parts_of = (seq, line["ordinal"] + 1)
        self._part_hash({name: line[name] for name in line if name not in ("type", "seq", "line_hash")}, before, seq)

    def _sequence(self, line: Mapping[str, Any]) -> None:
        seq, expected = line["seq"], self.last_seq + 1
        if seq > expected:
            self.findings.add("seq_gap", f"messages {expected} to {seq - 1} are missing")
        elif seq < expected:
            before = self.memory.get(seq)
            is_same = before is not None and before.event_id == line["event_id"].encode("ascii")
            code = "duplicate_event_id" if is_same else "seq_out_of_order"
            self.findings.add(code, f"message {seq} comes where message {expected} should")
        self._require(
            line["recorded_at"] >= self.recorded_at, "time_goes_back", f"message {seq} was recorded before the last one"
        )

    def _own_hashes(self, line: Mapping[str, Any]) -> None:
        seq, parts = line["seq"], line["parts"]
        said = "" if line["content"] is None else line["content"]
        if line["erased"]:
            is_gone = line["content"] is None and line["metadata"] is None
            self._require(is_gone, "erased_and_yet_there", f"message {seq} is marked as erased and has its texts")
        else:
            self._require(
                line["content"] is not None and hashing.content_hash(said).hex() == line["content_hash"],
                "content_hash_mismatch",
                f"the content of message {seq} is not what was hashed",
            )
            self._require(
                line["metadata"] is not None and _hex(hashing.metadata_hash(line["metadata"])) == line["metadata_hash"],
                "metadata_hash_mismatch",
                f"the metadata of message {seq} are not what was hashed",
            )
        self._require(
            [part["ordinal"] for part in parts] == list(range(line["chained_parts"])),
            "parts_incomplete",
            f"message {seq} came with {line['chained_parts']} parts; not these",
        )
        for part in parts:
            self._part_hash(part, line, seq)
        self._entry(line, parts)
        derived = kind_of(line["role"], parts), actor_of(line["role"], line["author"])
        if not line["erased"]:
            self._require(
                (line["kind"], line["actor"]) == derived,
                "kind_mismatch",
                f"message {seq} is {derived[0]} by {derived[1]}",
            )

    def _part_hash(self, part: Mapping[str, Any], message: Mapping[str, Any] | Remembered, seq: int) -> None:
        is_erased = message.is_erased if isinstance(message, Remembered) else message["erased"]
        if is_erased:
            # What is left of it is what the message around it needs; the hash is that of what it was.
            return
        values = {name: value for name, value in part.items() if name not in ("ordinal", "part_hash")}
        if "step_cost" in values:
            values["step_cost"] = Decimal(values["step_cost"])
        self._require(
            hashing.part_hash(values).hex() == part["part_hash"],
            "part_hash_mismatch",
            f"part {part['ordinal']} of message {seq} is not what was hashed",
        )

    def _entry(self, line: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> None:
        if line["erased"] and line["author"] is None:
            # The author may be gone with the text: then only the chain still seals the entry.
            return
        sealed = hashing.entry_hash(
            role=line["role"],
            author=line["author"],
            content=bytes.fromhex(line["content_hash"]),
            parts=[bytes.fromhex(part["part_hash"]) for part in parts],
        )
        self._require(
            sealed.hex() == line["entry_hash"],
            "entry_hash_mismatch",
            f"role, author, content or parts of message {line['seq']} are not what was sealed",
        )

    def _record(self, line: Mapping[str, Any]) -> None:
        """What is sealed beside the entry, and that the files are in their places."""
        seq, parts = line["seq"], {part["ordinal"]: part for part in line["parts"]}
        for entry in line["files"]:
            self.references.put(seq, entry)
        if line["erased"]:
            return
        for entry in line["files"]:
            wrong = misplaced(entry, line["content"], parts)
            self._require(not wrong, "reference_mismatch", f"message {seq}: {wrong}")
        if line["record_hash"] is None:
            # It was stored before there were such seals.
            return
        given = [(part.get("tool_input"), part.get("metadata")) for part in line["parts"]]
        sealed = hashing.record_hash(
            idempotency_key=line["idempotency_key"],
            token_count=line["token_count"],
            token_counter=line["token_counter"],
            keys=hashing.key_order(line["metadata"] or {}, given),
            files=line["files"],
        )
        self._require(
            sealed.hex() == line["record_hash"],
            "record_hash_mismatch",
            f"key, tokens, files or the order of JSON keys of message {seq} are not what was sealed",
        )

    def _chain(self, line: Mapping[str, Any]) -> None:
        """Against what this line says of the one before it: a broken link is one finding, not one for all behind it."""
        created_at, recorded_at = as_moment(line["created_at"]), as_moment(line["recorded_at"])
        link = hashlib.sha256(bytes.fromhex(self.chain_hash) + bytes.fromhex(line["entry_hash"]))
        for moment in (created_at, recorded_at):
            link.update(microseconds(moment).to_bytes(8, "big", signed=True))
        link.update(bytes.fromhex(line["metadata_hash"] or ""))
        if line["record_hash"] is not None:
            link.update(b"record:" + bytes.fromhex(line["record_hash"]))
        self._require(
            link.hexdigest() == line["chain_hash"],
            "chain_broken",
            f"message {line['seq']} does not follow from the one before it",
        )
        event_id = hashing.event_id(recorded_at=recorded_at, chain_hash=bytes.fromhex(line["chain_hash"]))
        self._require(
            event_id == line["event_id"], "event_id_mismatch", f"the event_id of message {line['seq']} is another one's"
        )

    def _require(self, holds: bool, code: str, detail: str) -> None:
        self.findings.require(holds, code, detail)


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
