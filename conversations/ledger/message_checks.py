"""Check the messages of a ledger and their parts against their hashes. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from decimal import Decimal

from conversations.content import hashing
from conversations.content.large_texts.file_references import misplaced
from conversations.ledger.line_shapes import actor_of, kind_of
from conversations.ledger.lines import as_moment, microseconds
from conversations.ledger.types import Findings, Line
from conversations.ledger.verification_memory import Remembered, VerificationMemory
from conversations.types import PART_COLUMNS


def part_hash_of(part: Line) -> str:
    values = {name: part[name] for name in PART_COLUMNS if name in part}
    if "step_cost" in values:
        values["step_cost"] = Decimal(values["step_cost"])
    return hashing.part_hash(values).hex()


def metadata_hash_of(line: Line) -> str | None:
    digest = hashing.metadata_hash(line["metadata"])
    return None if digest is None else digest.hex()


def entry_hash_of(line: Line) -> str:
    """Return the hash of role, author, and the hashes of content and parts."""
    content, parts = bytes.fromhex(line["content_hash"]), [bytes.fromhex(part["part_hash"]) for part in line["parts"]]
    return hashing.entry_hash(role=line["role"], author=line["author"], content=content, parts=parts).hex()


def record_hash_of(line: Line) -> str:
    """Return the record_hash of a message: of values that no other hash covers."""
    given = [(part.get("tool_input"), part.get("metadata")) for part in line["parts"]]
    return hashing.record_hash(
        idempotency_key=line["idempotency_key"],
        token_count=line["token_count"],
        token_counter=line["token_counter"],
        keys=hashing.key_order(line["metadata"] or {}, given),
        files=line["files"],
    ).hex()


def chain_hash_of(line: Line, *, previous: str) -> str:
    """Compute the chain_hash of a message from the chain_hash of its predecessor."""
    link = hashlib.sha256(bytes.fromhex(previous + line["entry_hash"]))
    for name in ("created_at", "recorded_at"):
        link.update(microseconds(line[name]).to_bytes(8, "big", signed=True))
    link.update(bytes.fromhex(line["metadata_hash"] or ""))
    if line["record_hash"] is not None:
        link.update(b"record:" + bytes.fromhex(line["record_hash"]))
    return link.hexdigest()


def event_id_of(line: Line) -> str:
    return hashing.event_id(recorded_at=as_moment(line["recorded_at"]), chain_hash=bytes.fromhex(line["chain_hash"]))


@dataclass
class MessageCheck:
    """Checks the messages of one conversation, in order."""

    findings: Findings
    memory: VerificationMemory
    last_seq: int = 0
    tokens: int = 0
    chain_hash: str = ""
    recorded_at: str = ""
    # The last message with added parts: its seq, and the ordinal of its next part.
    _parts_of: tuple[int, int] = (0, 0)

    def message(self, line: Line) -> None:
        """Check a message, and that it follows from the one before it."""
        seq, key, require = line["seq"], line["idempotency_key"], self.findings.require
        self._sequence(line)
        self._texts(line)
        self._parts(line)
        self._record(line)
        # `self.chain_hash` is the recorded hash of the predecessor, so that a broken link causes only one finding.
        follows = chain_hash_of(line, previous=self.chain_hash) == line["chain_hash"]
        require(follows, "chain_broken", f"message {seq} does not follow from its predecessor")
        is_own = event_id_of(line) == line["event_id"]
        require(
            is_own, "event_id_mismatch", f"the event_id of message {seq} does not follow from its time and chain_hash"
        )
        is_new = key is None or self.memory.take_key(key)
        require(is_new, "duplicate_idempotency_key", f"message {seq} has the idempotency key of another message")
        self.memory.put(
            Remembered(
                seq=seq,
                content_hash=line["content_hash"],
                event_id=line["event_id"],
                created_at=microseconds(line["created_at"]),
                token_count=line["token_count"],
                chained_parts=line["chained_parts"],
                is_erased=line["erased"],
            )
        )
        self.last_seq, self.tokens = max(self.last_seq, seq), self.tokens + line["token_count"]
        self.chain_hash, self.recorded_at = line["chain_hash"], line["recorded_at"]

    def part(self, line: Line) -> None:
        """Check a part that was added to a message later."""
        seq, message = line["seq"], self.memory.get(line["seq"])
        if message is None:
            self.findings.add("unknown_message", f"there is no message {seq} for this part")
            return
        expected = self._parts_of[1] if self._parts_of[0] == seq else message.chained_parts
        self.findings.require(
            seq >= self._parts_of[0] and line["ordinal"] == expected,
            "parts_incomplete",
            f"message {seq}: part {line['ordinal']} is in the place of part {expected}",
        )
        self._parts_of = (seq, line["ordinal"] + 1)
        self._part_hash(line, seq, is_erased=bool(message.is_erased))

    def _sequence(self, line: Line) -> None:
        seq, expected = line["seq"], self.last_seq + 1
        if seq > expected:
            self.findings.add("seq_gap", f"messages {expected} to {seq - 1} are missing")
        elif seq < expected:
            before = self.memory.get(seq)
            is_same = before is not None and before.event_id == line["event_id"]
            code = "duplicate_event_id" if is_same else "seq_out_of_order"
            self.findings.add(code, f"message {seq} is in the place of message {expected}")
        is_later = line["recorded_at"] >= self.recorded_at
        self.findings.require(is_later, "time_goes_back", f"message {seq} was recorded before its predecessor")

    def _texts(self, line: Line) -> None:
        seq, content, metadata, require = line["seq"], line["content"], line["metadata"], self.findings.require
        if line["erased"]:
            is_empty = content is None and metadata is None
            require(is_empty, "erased_and_yet_there", f"message {seq} is erased but has texts")
            return
        is_same = content is not None and hashing.content_hash(content).hex() == line["content_hash"]
        require(is_same, "content_hash_mismatch", f"the content of message {seq} does not match its hash")
        is_same = metadata is not None and metadata_hash_of(line) == line["metadata_hash"]
        require(is_same, "metadata_hash_mismatch", f"the metadata of message {seq} does not match its hash")

    def _parts(self, line: Line) -> None:
        seq, parts, is_erased = line["seq"], line["parts"], line["erased"]
        self.findings.require(
            len(parts) == line["chained_parts"] and all(part["ordinal"] == n for n, part in enumerate(parts)),
            "parts_incomplete",
            f"message {seq} was appended with {line['chained_parts']} parts, not with these",
        )
        for part in parts:
            self._part_hash(part, seq, is_erased=is_erased)
        # The author may be erased as well. Then the entry_hash cannot be computed; the chain_hash covers it.
        is_unsealed = is_erased and line["author"] is None
        self.findings.require(
            is_unsealed or entry_hash_of(line) == line["entry_hash"],
            "entry_hash_mismatch",
            f"role, author, content or parts of message {seq} do not match its entry hash",
        )
        kind, actor = kind_of(line["role"], parts), actor_of(line["role"], line["author"])
        is_same = is_erased or (line["kind"], line["actor"]) == (kind, actor)
        self.findings.require(is_same, "kind_mismatch", f"message {seq} is {kind} by {actor}")

    def _part_hash(self, part: Line, seq: int, *, is_erased: bool) -> None:
        # An erased part keeps some values and the hash of the original.
        is_same = is_erased or part_hash_of(part) == part["part_hash"]
        sentence = f"part {part['ordinal']} of message {seq} does not match its hash"
        self.findings.require(is_same, "part_hash_mismatch", sentence)

    def _record(self, line: Line) -> None:
        """Check the record hash, and that files are at their positions."""
        seq, parts = line["seq"], {part["ordinal"]: part for part in line["parts"]}
        for entry in line["files"]:
            self.memory.put_reference(seq, entry)
            wrong = "" if line["erased"] else misplaced(entry, line["content"], parts)
            self.findings.require(not wrong, "reference_mismatch", f"message {seq}: {wrong}")
        # A message may have no record_hash.
        is_unsealed = line["erased"] or line["record_hash"] is None
        self.findings.require(
            is_unsealed or record_hash_of(line) == line["record_hash"],
            "record_hash_mismatch",
            f"idempotency key, tokens, files or JSON key order of message {seq} do not match its record hash",
        )
