"""Insert the rows of a ledger's lines, with their original times and hashes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from conversations.content.flattening import flattened, searchable
from conversations.content.hashing import journal_text
from conversations.content.lossless_values import as_json, split, storable
from conversations.errors import Conflict
from conversations.ledger.types import Line
from conversations.models import Conversation, FileReference, HeadMove, JournalEntry, LargeFile, Message, Project
from conversations.sql import execute, load
from conversations.store.part_rows import part_row_of
from conversations.types import PART_COLUMNS, NewPart, PartType

SQL = load("conversations/ledger.sql")


class NeedsAnother(Conflict):
    """A conversation needs another one that is not imported (yet)."""


class FileNotThere(NeedsAnother):
    """A message needs a file of a conversation that is not imported (yet)."""

    code = "file_not_there"


class ParentNotThere(NeedsAnother):
    """The parent of a conversation is not imported (yet)."""

    code = "parent_not_there"

    def __init__(self, session_id: str, parent: str) -> None:
        super().__init__(
            f"The conversation {session_id[:80]!r} has the parent {parent[:80]!r}, which is missing in this workspace. "
            "Import that conversation first, or both in one ledger."
        )


@dataclass(frozen=True)
class Restored:
    """Writes rows of one imported conversation; `audit_id` is of the audit entry."""

    conversation_id: int
    workspace_id: int
    session_id: str
    audit_id: int

    def messages(self, lines: Sequence[Line]) -> None:
        """Write messages with the parts that they were appended with."""
        self._write("insert_messages", [message_row(line) for line in lines])
        self.parts([{"seq": line["seq"], **part} for line in lines for part in line["parts"]])

    def parts(self, lines: Sequence[Line]) -> None:
        """Write parts of existing messages."""
        if lines:
            self._write("insert_parts", [{**part_row(line), "seq": line["seq"]} for line in lines])

    def head_moves(self, lines: Sequence[Line]) -> None:
        """Write the moves of the head, in order."""
        names = ("number", "at_seq", "head_seq", "recorded_at", "reason")
        for line in lines:
            HeadMove.objects.create(conversation_id=self.conversation_id, **{name: line[name] for name in names})

    def journal(self, lines: Sequence[Line]) -> None:
        """Write the journal: the raw entries of the agent program (host)."""
        JournalEntry.objects.bulk_create(
            JournalEntry(
                conversation_id=self.conversation_id,
                entry_hash=bytes.fromhex(line["entry_hash"]),
                erased_by_id=self.audit_id if line["erased"] else None,
                entry=None if line["erased"] else journal_text(line["entry"]),
                **{name: line[name] for name in ("subpath", "position", "uuid", "recorded_at")},
            )
            for line in lines
        )

    def summaries(self, lines: Sequence[Line]) -> None:
        """Write summaries with their links to existing sources."""
        self._write("insert_summaries", lines)
        for line in lines:
            values = {name: line[name] for name in ("summary_id", "source_seqs", "source_ids")}
            execute(SQL["insert_source_messages"], {**self._ids, **values})
            execute(SQL["insert_source_summaries"], values)

    def file(self, line: Line, *, storage_uri: str) -> None:
        """Write the row of a file whose bytes have this path."""
        given = ("file_id", "file_name", "mime_type", "byte_size", "exploration_summary", "created_at")
        LargeFile(
            **{name: line[name] for name in given},
            conversation_id=self.conversation_id,
            storage_uri=storage_uri,
            content_hash=None if line["content_hash"] is None else bytes.fromhex(line["content_hash"]),
            erased_by_id=self.audit_id if line["bytes"] == "erased" else None,
        ).save(force_insert=True)

    def references(self, lines: Sequence[Line]) -> None:
        """Write the file references of messages; FileNotThere for a missing file."""
        needed = {line["file_id"] for line in lines}
        own = LargeFile.objects.filter(pk__in=needed, conversation__workspace_id=self.workspace_id)
        missing = needed - set(own.values_list("pk", flat=True))
        if missing:
            raise FileNotThere(
                f"A message of {self.session_id[:80]!r} needs {min(missing)}, a file of another conversation that is "
                "missing in this workspace. Import that conversation first."
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

    def belongings(self, line: Line) -> dict[str, Any]:
        """Return the project and parent that a conversation's `end` line names.

        Creates the project if it is new. Raises ParentNotThere for a missing parent.
        """
        found: dict[str, Any] = {}
        if "project" in line:
            found["project"], _ = Project.objects.get_or_create(workspace_id=self.workspace_id, name=line["project"])
        if "parent_session_id" in line:
            named = Conversation.objects.filter(workspace_id=self.workspace_id, session_id=line["parent_session_id"])
            parent = named.exclude(pk=self.conversation_id).first()
            if parent is None:
                raise ParentNotThere(self.session_id, line["parent_session_id"])
            found |= {"parent": parent, "parent_link": line["parent_link"]}
        return found

    @property
    def _ids(self) -> dict[str, Any]:
        return {"conversation_id": self.conversation_id, "session_id": self.session_id, "audit_id": self.audit_id}

    def _write(self, name: str, given: Iterable[Mapping[str, Any]]) -> None:
        execute(SQL[name], {**self._ids, "rows": as_json([dict(row) for row in given])})


def message_row(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message's columns as an append writes them."""
    given = {name: value for name, value in line.items() if name != "parts"}
    if line["erased"]:
        return {**given, "content": "", "metadata": None}
    content = line["content"]
    columns, exact = split({"content": content, "metadata": line["metadata"]})
    parts = [_new_part(part) for part in line["parts"]]
    whole = content if content == flattened(parts) else searchable(content, parts)
    if whole != content:
        exact = {**exact, "content": content}
        columns["content"] = storable(whole)
    return {**given, **columns, "exact": json.dumps(exact) if exact else None}


def part_row(line: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part's columns as an append writes them, with its original hash."""
    return {**part_row_of(_new_part(line)), "ordinal": line["ordinal"], "part_hash": line["part_hash"]}


def _new_part(line: Mapping[str, Any]) -> NewPart:
    """Return a part as a caller would append it."""
    values = {name: line[name] for name in PART_COLUMNS if name in line}
    values["part_type"] = PartType(values["part_type"])
    if "patch_files" in values:
        values["patch_files"] = tuple(values["patch_files"])
    if "step_cost" in values:
        values["step_cost"] = Decimal(values["step_cost"])
    return NewPart(**values)
