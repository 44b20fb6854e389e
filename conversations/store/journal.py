"""The journal: what a host's own transcript holds, entry by entry, as it came.

Entries are JSON objects that LCM does not read, but for their `uuid`: under one uuid an entry is kept once. They come
back in order and deep-equal, beside the messages that were made of them.
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
    """What became of entries: those `kept`, and those that were there already."""

    conversation_id: int
    subpath: str
    kept: int
    repeated: int
    last_position: int


@dataclass(frozen=True)
class JournalRecord:
    """One entry as it came; None if it was erased."""

    position: int
    uuid: str | None
    entry: Mapping[str, Any] | None
    recorded_at: datetime
    erased_by_id: int | None = None


@dataclass(frozen=True)
class Subpath:
    """A part of a journal: one file of the host."""

    subpath: str
    entry_count: int
    updated_at: datetime
    byte_size: int


@dataclass(frozen=True)
class Journal(Scoped):
    """Keeps and reads the raw entries of hosts."""

    @transaction.atomic
    def append_entries(
        self, *, conversation_id: int, entries: Sequence[Mapping[str, Any]], subpath: str = ""
    ) -> JournalAppend:
        """Keep entries of a host, in order: all, or none.

        An entry whose `uuid` is kept already in this subpath is not kept again; Conflict if it was another one.
        `subpath` names a file of the host beside that of the session, such as a subagent's. Raises NotFound; Invalid
        for more than 1,000 entries, and for one that is nested too deeply.
        """
        self.scope.conversation(conversation_id, locked=True)
        if subpath:
            require_names(subpath=subpath)
        if len(entries) > MOST_ENTRIES:
            raise Invalid(f"{len(entries)} entries are too many at once; send {MOST_ENTRIES} at most.")
        given = [(_uuid_of(entry, place), entry_text(entry, place)) for place, entry in enumerate(entries, start=1)]
        where = {"id": conversation_id, "subpath": subpath}
        uuids = [uuid for uuid, _ in given if uuid is not None]
        known = dict(rows(_SQL["stored_entries"], {**where, "uuids": uuids})) if uuids else {}
        new: list[tuple[str | None, str]] = []
        for uuid, text in given:
            if uuid is None or uuid not in known:
                new.append((uuid, text))
            elif known[uuid] is not None and json.loads(known[uuid]) != json.loads(text):
                raise Conflict(f"Another entry is kept under the uuid {uuid[:80]!r}; nothing was kept.")
            if uuid is not None:
                known[uuid] = text
        values = {**where, "uuids": [uuid for uuid, _ in new], "entries": [text for _, text in new]}
        [(last,)] = rows(_SQL["insert_entries"], values)
        return JournalAppend(conversation_id, subpath, len(new), len(given) - len(new), last)

    def list_entries(
        self, *, conversation_id: int, subpath: str = "", after_position: int = 0, limit: int = 100
    ) -> list[JournalRecord]:
        """List the entries of a journal as they came, oldest first.

        A page has 8 MiB at most, or one entry. NotFound if there is no such conversation.
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
        is_cut = len(found) < limit and _has_more(values, found)
        return Page(entries, more=is_cut)

    def list_subpaths(
        self, *, conversation_id: int, after_subpath: str | None = None, limit: int = 100
    ) -> list[Subpath]:
        """List the parts of a journal: the session's own file, "", and those beside it.

        None of them is there before its first entry. NotFound if there is no such conversation.
        """
        self.scope.conversation(conversation_id)
        values = {"id": conversation_id, "after": after_subpath, "limit": limit}
        return [Subpath(*row) for row in rows(_SQL["subpaths"], values)]


def _has_more(values: Mapping[str, Any], found: Sequence[tuple[Any, ...]]) -> bool:
    """Whether entries follow those of a page that its bytes have ended."""
    last = found[-1][0] if found else values["after"]
    return bool(found) and bool(rows(_SQL["page_of_entries"], {**values, "after": last, "limit": 1}))


def _uuid_of(entry: Mapping[str, Any], place: int) -> str | None:
    uuid = entry.get("uuid")
    if uuid is None or not isinstance(uuid, str):
        return None
    if not is_storable(uuid) or not 0 < len(uuid) <= 500:
        raise Invalid(f"Entry {place}: its uuid must have 1 to 500 characters, without NUL or lone surrogates.")
    return uuid


def entry_text(entry: Mapping[str, Any], place: int) -> str:
    """Return an entry as it is kept; Invalid, with its place, if it cannot be."""
    if is_deeper(entry, MOST_LEVELS):
        raise Invalid(f"Entry {place} has more than {MOST_LEVELS} levels.")
    try:
        return journal_text(entry)
    except ValueError as wrong:
        raise Invalid(f"Entry {place} is not JSON: {wrong}.") from wrong
