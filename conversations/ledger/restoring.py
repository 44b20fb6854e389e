"""Writes rows of what the lines of a ledger say, with the times and hashes that they had."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from conversations.content.flattening import flattened, searchable
from conversations.content.lossless_values import split, storable
from conversations.errors import Conflict
from conversations.ledger.line_shapes import PART_COLUMNS
from conversations.ledger.types import Line
from conversations.models import FileReference, LargeFile, Message
from conversations.sql import rows
from conversations.store.append import as_json, part_row_of
from conversations.types import NewPart, PartType

_JSON_COLUMNS = frozenset({"metadata"})

_MESSAGES = """
    INSERT INTO messages (
        conversation_id, seq, role, content, token_count, created_at, recorded_at, author, idempotency_key, metadata,
        exact, token_counter, chained_parts, content_hash, entry_hash, metadata_hash, record_hash,
        chain_hash, erased_by_id
    )
    SELECT %(conversation_id)s::bigint, seq, role, content, token_count, created_at, recorded_at, author,
           idempotency_key, coalesce(metadata, '{}'), exact::json, token_counter, chained_parts,
           decode(content_hash, 'hex'), decode(entry_hash, 'hex'), decode(metadata_hash, 'hex'),
           decode(record_hash, 'hex'), decode(chain_hash, 'hex'), CASE WHEN erased THEN %(audit_id)s::bigint END
    FROM json_to_recordset(%(rows)s::json) AS given(
        seq bigint, role message_role, content text, token_count integer, created_at timestamptz,
        recorded_at timestamptz, author text, idempotency_key text, metadata jsonb, exact text, token_counter text,
        chained_parts integer, content_hash text, entry_hash text, metadata_hash text, record_hash text,
        chain_hash text, erased boolean
    )
    ORDER BY seq
"""
_PART_TYPES = {
    **dict.fromkeys(PART_COLUMNS, "text"),
    "part_type": "message_part_type",
    "is_ignored": "boolean",
    "is_synthetic": "boolean",
    "compaction_auto": "boolean",
    "tool_input": "jsonb",
    "metadata": "jsonb",
    "patch_files": "text[]",
    "step_cost": "numeric",
    "step_tokens_in": "integer",
    "step_tokens_out": "integer",
}
_PARTS = f"""
    INSERT INTO message_parts (
        part_id, message_id, session_id, ordinal, {", ".join(PART_COLUMNS)}, exact, part_hash
    )
    SELECT 'part_' || m.message_id || '_' || given.ordinal, m.message_id, %(session_id)s::text, given.ordinal,
           {", ".join(f"given.{name}" for name in PART_COLUMNS)}, given.exact::json, decode(given.part_hash, 'hex')
    FROM json_to_recordset(%(rows)s::json) AS given(
        seq bigint, ordinal integer, {", ".join(f"{name} {kind}" for name, kind in _PART_TYPES.items())}, exact text,
        part_hash text
    )
    JOIN messages m ON m.conversation_id = %(conversation_id)s AND m.seq = given.seq
"""
_SUMMARIES = """
    INSERT INTO summaries (
        summary_id, conversation_id, kind, content, token_count, created_at, file_ids, depth, first_seq, last_seq,
        earliest_at, latest_at, source_count, descendant_count, source_tokens, level, model, quality, token_counter,
        summary_hash, run_id, retention, is_degraded, supersedes_id, prompt_hash, tokens_in, tokens_out, duration_ms,
        erased_by_id
    )
    SELECT summary_id, %(conversation_id)s::bigint, kind, coalesce(content, ''), token_count, created_at, file_ids,
           depth, first_seq, last_seq, earliest_at, latest_at, source_count, descendant_count, source_tokens, level,
           model, quality, token_counter, decode(summary_hash, 'hex'), run_id, retention, is_degraded, supersedes_id,
           prompt_hash, tokens_in, tokens_out, duration_ms, CASE WHEN erased THEN %(audit_id)s::bigint END
    FROM json_to_recordset(%(rows)s::json) AS given(
        summary_id text, kind summary_kind, content text, token_count integer, created_at timestamptz, file_ids jsonb,
        depth integer, first_seq bigint, last_seq bigint, earliest_at timestamptz, latest_at timestamptz,
        source_count integer, descendant_count integer, source_tokens bigint, level text, model text, quality jsonb,
        token_counter text, summary_hash text, run_id text, retention float, is_degraded boolean, supersedes_id text,
        prompt_hash text, tokens_in integer, tokens_out integer, duration_ms integer, erased boolean
    )
"""
_SOURCE_MESSAGES = """
    INSERT INTO summary_messages (summary_id, message_id, ordinal)
    SELECT %(summary_id)s::text, m.message_id, given.place - 1
    FROM unnest(%(source_seqs)s::bigint[]) WITH ORDINALITY AS given(seq, place)
    JOIN messages m ON m.conversation_id = %(conversation_id)s AND m.seq = given.seq
"""
_SOURCE_SUMMARIES = """
    INSERT INTO summary_parents (summary_id, parent_summary_id, ordinal)
    SELECT %(summary_id)s::text, source_id, place - 1
    FROM unnest(%(source_ids)s::text[]) WITH ORDINALITY AS given(source_id, place)
"""


class FileNotThere(Conflict):
    """A message names a file of a conversation that is not there, or not yet."""

    code = "file_not_there"


@dataclass(frozen=True)
class Restored:
    """The conversation that rows are written into, and the act that wrote them."""

    conversation_id: int
    workspace_id: int
    session_id: str
    audit_id: int

    def messages(self, lines: Sequence[Line]) -> None:
        """Messages with the parts that they came with."""
        self._write(_MESSAGES, [message_row(line) for line in lines])
        self.parts([{"seq": line["seq"], **part} for line in lines for part in line["parts"]])

    def parts(self, lines: Sequence[Line]) -> None:
        """Parts of messages that are there."""
        if lines:
            self._write(_PARTS, [{**part_row(line), "seq": line["seq"]} for line in lines])

    def summaries(self, lines: Sequence[Line]) -> None:
        """Summaries with their links; what they were made from is there."""
        self._write(_SUMMARIES, lines)
        for line in lines:
            values = {name: line[name] for name in ("summary_id", "source_seqs", "source_ids")}
            _execute(_SOURCE_MESSAGES, {**self._ids, **values})
            _execute(_SOURCE_SUMMARIES, values)

    def file(self, line: Line, *, storage_uri: str) -> None:
        """What is known of a file, whose bytes lie there, or will."""
        LargeFile(
            file_id=line["file_id"],
            conversation_id=self.conversation_id,
            file_name=line["file_name"],
            mime_type=line["mime_type"],
            byte_size=line["byte_size"],
            storage_uri=storage_uri,
            exploration_summary=line["exploration_summary"],
            created_at=datetime.fromisoformat(line["created_at"]),
            content_hash=None if line["content_hash"] is None else bytes.fromhex(line["content_hash"]),
            erased_by_id=self.audit_id if line["bytes"] == "erased" else None,
        ).save(force_insert=True)

    def references(self, lines: Sequence[Line]) -> None:
        """Write which messages need which files; FileNotThere for a file that is not in the workspace."""
        needed = {line["file_id"] for line in lines}
        own = LargeFile.objects.filter(pk__in=needed, conversation__workspace_id=self.workspace_id)
        missing = needed - set(own.values_list("pk", flat=True))
        if missing:
            raise FileNotThere(
                f"A message of {self.session_id[:80]!r} names {min(missing)}, a file of another conversation, which is "
                "not in this workspace. Import that conversation first."
            )
        seqs = {line["seq"] for line in lines}
        messages = Message.objects.filter(conversation_id=self.conversation_id, seq__in=seqs)
        ids = dict(messages.values_list("seq", "message_id"))
        FileReference.objects.bulk_create(
            FileReference(
                message_id=ids[line["seq"]],
                **{name: line[name] for name in ("file_id", "part_ordinal", "field", "start_at", "length")},
            )
            for line in lines
        )

    @property
    def _ids(self) -> dict[str, Any]:
        return {"conversation_id": self.conversation_id, "session_id": self.session_id, "audit_id": self.audit_id}

    def _write(self, statement: str, given: Iterable[Mapping[str, Any]]) -> None:
        _execute(statement, {**self._ids, "rows": as_json([dict(row) for row in given])})


def _execute(statement: str, values: Mapping[str, Any]) -> None:
    """Insert with values that go to the server beside the statement.

    Django would put them into it, and the driver remembers the last hundred statements: of these, each is megabytes.
    """
    rows(f"WITH written AS ({statement} RETURNING 1) SELECT count(*) FROM written", values)


def message_row(line: Mapping[str, Any]) -> dict[str, Any]:
    """As an append would write it: a stand-in where the column cannot hold the text, and what is searched."""
    given = {name: value for name, value in line.items() if name != "parts"}
    if line["erased"]:
        return {**given, "content": "", "metadata": None}
    content = line["content"]
    columns, exact = split({"content": content, "metadata": line["metadata"]}, _JSON_COLUMNS)
    parts = [new_part(part) for part in line["parts"]]
    whole = content if content == flattened(parts) else searchable(content, parts)
    if whole != content:
        exact = {**exact, "content": content}
        columns["content"] = storable(whole)
    return {**given, **columns, "exact": json.dumps(exact) if exact else None}


def part_row(line: Mapping[str, Any]) -> dict[str, Any]:
    """The same of a part; its hash is the one that it had."""
    return {**part_row_of(new_part(line)), "ordinal": line["ordinal"], "part_hash": line["part_hash"]}


def new_part(line: Mapping[str, Any]) -> NewPart:
    """A part as somebody would append it."""
    values = {name: line[name] for name in PART_COLUMNS if name in line}
    values["part_type"] = PartType(values["part_type"])
    if "patch_files" in values:
        values["patch_files"] = tuple(values["patch_files"])
    if "step_cost" in values:
        values["step_cost"] = Decimal(values["step_cost"])
    return NewPart(**values)
