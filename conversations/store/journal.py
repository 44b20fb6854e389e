"""Store and list the journal: raw transcript entries of agent programs (hosts).

Entries are JSON objects. LCM reads only their `uuid`: an entry is stored once per uuid. Entries are returned in order,
and equal to those that were sent. The messages that are made from them are stored separately.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from conversations.content.hashing import journal_text
from conversations.content.lossless_values import MOST_LEVELS, is_deeper, is_storable, require_names
from conversations.errors import Conflict, Invalid
from conversations.scope import Scoped
from conversations.sql import load, rows
from conversations.store.pages import MOST_PAGE_BYTES, Page

_SQL = load("conversations/journal/pages.sql")
MOST_ENTRIES = 1_000


@dataclass(frozen=True)
class JournalAppend:
    """The result of an append: `kept` entries are new, `repeated` ones were stored."""

    conversation_id: int
    subpath: str
    kept: int
    repeated: int
    last_position: int


@dataclass(frozen=True)
class JournalRecord:
    """One journal entry, unchanged; `entry` is absent if it was erased."""

    position: int
    uuid: str | None
    entry: Mapping[str, Any] | None
    recorded_at: datetime
    erased_by_id: int | None = None


@dataclass(frozen=True)
class Subpath:
    """One transcript file in a journal, with its number of entries and bytes."""

    subpath: str
    entry_count: int
    updated_at: datetime
    byte_size: int


@dataclass(frozen=True)
class Journal(Scoped):
    """Stores and lists the raw entries of hosts."""

    @transaction.atomic
    def append_entries(
        self, *, conversation_id: int, entries: Sequence[Mapping[str, Any]], subpath: str = ""
    ) -> JournalAppend:
        """Store raw transcript entries, in order: all, or none.

        They are lines of the transcript of an agent program (host). An entry whose `uuid` is already stored in this
        subpath is skipped. `subpath` names a transcript file other than the session's own, such as a subagent's. Raises
        NotFound; Conflict if the uuid belongs to another stored entry; Invalid for more than 1,000 entries, or for an
        entry that is nested too deeply.
        """
        self.scope.conversation(conversation_id, locked=True)
        if subpath:
            require_names(subpath=subpath)
        if len(entries) > MOST_ENTRIES:
            raise Invalid(f"{len(entries)} entries are too many for one request; send at most {MOST_ENTRIES}.")
        given = [(_uuid_of(entry, place), entry_text(entry, place)) for place, entry in enumerate(entries, start=1)]
        where = {"id": conversation_id, "subpath": subpath}
        uuids = [uuid for uuid, _ in given if uuid is not None]
        known = dict(rows(_SQL["stored_entries"], {**where, "uuids": uuids})) if uuids else {}
        new: list[tuple[str | None, str]] = []
        for uuid, text in given:
            if uuid is None or uuid not in known:
                new.append((uuid, text))
            elif known[uuid] is not None and json.loads(known[uuid]) != json.loads(text):
                raise Conflict(f"The uuid {uuid[:80]!r} belongs to another stored entry; nothing was stored.")
            if uuid is not None:
                known[uuid] = text
        values = {**where, "uuids": [uuid for uuid, _ in new], "entries": [text for _, text in new]}
        [(last,)] = rows(_SQL["insert_entries"], values)
        return JournalAppend(conversation_id, subpath, len(new), len(given) - len(new), last)

    def list_entries(
        self, *, conversation_id: int, subpath: str = "", after_position: int = 0, limit: int = 100
    ) -> list[JournalRecord]:
        """List the entries of one file in a journal, unchanged, oldest first.

        A page has at most 8 MiB, or one larger entry. Raises NotFound.
        """
        self.scope.conversation(conversation_id)
        if not is_storable(subpath):
            return Page()
        values = {
            "id": conversation_id,
            "subpath": subpath,
            "after": after_position,
            "limit": limit,
            "most_bytes": MOST_PAGE_BYTES,
        }
        found = rows(_SQL["page_of_entries"], values)
        entries = [
            JournalRecord(position, uuid, None if text is None else json.loads(text), recorded_at, erased_by_id)
            for position, uuid, text, recorded_at, erased_by_id, _ in found
        ]
        return Page(entries, more=bool(found) and len(found) < found[0][-1])

    def list_subpaths(
        self, *, conversation_id: int, after_subpath: str | None = None, limit: int = 100
    ) -> list[Subpath]:
        """List the files of a journal by subpath; "" is the session's own file.

        A file without entries is not listed. Raises NotFound.
        """
        self.scope.conversation(conversation_id)
        values = {"id": conversation_id, "after": after_subpath, "limit": limit}
        return [Subpath(*row) for row in rows(_SQL["subpaths"], values)]


def _uuid_of(entry: Mapping[str, Any], place: int) -> str | None:
    uuid = entry.get("uuid")
    if uuid is None or not isinstance(uuid, str):
        return None
    if not is_storable(uuid) or not 0 < len(uuid) <= 500:
        raise Invalid(f"Entry {place}: its uuid must have 1 to 500 characters, without NUL or lone surrogates.")
    return uuid


def entry_text(entry: Mapping[str, Any], place: int) -> str:
    """Serialize an entry for storage; Invalid names the entry that cannot be stored."""
    if is_deeper(entry, MOST_LEVELS):
        raise Invalid(f"Entry {place} has more than {MOST_LEVELS} levels.")
    try:
        return journal_text(entry)
    except ValueError as wrong:
        raise Invalid(f"Entry {place} is not JSON: {wrong}.") from wrong
