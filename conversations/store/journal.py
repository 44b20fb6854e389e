"""Store and list the journal: raw transcript entries of agent programs (hosts).

Entries are JSON objects. LCM reads only their `uuid`: an entry is stored once per uuid. Entries are returned in order,
and equal to those that were sent. The messages that are made from them are stored separately.

An imported file is read again when it has grown. Stored lines are recognized by their position and hash: only new lines
are stored. A file that its host has rewritten is stored as another version, under its name with a number (`name#2`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from conversations.content.hashing import journal_text
from conversations.content.lossless_values import MOST_LEVELS, is_deeper, is_name, is_storable, require_names
from conversations.errors import Conflict, Invalid, NotFound
from conversations.scope import Scoped
from conversations.sql import execute, load, rows
from conversations.store.pages import MOST_PAGE_BYTES, Page

_SQL, _FILES = load("conversations/journal/pages.sql"), load("conversations/journal/files.sql")
MOST_ENTRIES = 1_000
# Maximum number of files that an error names.
_LISTED = 100


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
        given = [(_uuid_of(entry, place), _entry_text(entry, place)) for place, entry in enumerate(entries, start=1)]
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

    @transaction.atomic
    def keep_lines(
        self, *, conversation_id: int, subpath: str, lines: Sequence[Mapping[str, Any]], after: int = 0
    ) -> str:
        """Store the lines of a file that follow its first `after` lines.

        Returns the subpath of the version that contains these lines; pass it with the next lines. Lines that are stored
        already are skipped. Raises NotFound, or Invalid for a line that is nested too deeply.
        """
        self.scope.conversation(conversation_id, locked=True)
        if subpath:
            require_names(subpath=subpath)
        texts = [_entry_text(line, place) for place, line in enumerate(lines, start=after + 1)]
        hashes = [hashlib.sha256(text.encode("ascii")).digest() for text in texts]
        while True:
            where = {"id": conversation_id, "subpath": subpath}
            known = _hashes(where, after=after, limit=len(hashes))
            pairs = zip(known, hashes, strict=False)
            changed = next((place for place, (old, new) in enumerate(pairs) if old != new), None)
            if changed is None:
                break
            subpath = _version_from(where, until=after + changed)
        first = len(known)
        if texts[first:]:
            values = {**where, "uuids": _free_uuids(where, lines[first:]), "entries": texts[first:]}
            rows(_SQL["insert_entries"], values)
        return subpath

    def lines(self, *, conversation_id: int, subpath: str | None = None) -> Iterator[Mapping[str, Any] | None]:
        """Yield the lines of a file, and None for each erased line.

        The default is the newest version of the session's own file. Raises NotFound if there is no such file.
        """
        self.scope.conversation(conversation_id)
        where = {"id": conversation_id}
        if subpath is None:
            subpath = next((each for (each,) in rows(_FILES["newest_file"], where)), "")
        if not is_storable(subpath) or not _hashes({**where, "subpath": subpath}, after=0, limit=1):
            listed = self.list_subpaths(conversation_id=conversation_id, limit=_LISTED)
            named = ", ".join(repr(each.subpath) for each in listed) or "none"
            raise NotFound(f"The journal of this conversation has no such transcript file. It has: {named}.")
        return self._lines(conversation_id, subpath)

    def line(self, *, conversation_id: int, subpath: str, position: int) -> Mapping[str, Any] | None:
        """Return one line; None if it was erased or does not exist."""
        found = self.list_entries(
            conversation_id=conversation_id, subpath=subpath, after_position=position - 1, limit=1
        )
        return found[0].entry if found and found[0].position == position else None

    def _lines(self, conversation_id: int, subpath: str) -> Iterator[Mapping[str, Any] | None]:
        after = 0
        where: dict[str, Any] = {"conversation_id": conversation_id, "subpath": subpath}
        while page := self.list_entries(**where, after_position=after, limit=MOST_ENTRIES):
            yield from (each.entry for each in page)
            after = page[-1].position


def _uuid_of(entry: Mapping[str, Any], place: int) -> str | None:
    uuid = entry.get("uuid")
    if uuid is None or not isinstance(uuid, str):
        return None
    if not is_storable(uuid) or not 0 < len(uuid) <= 500:
        raise Invalid(f"Entry {place}: its uuid must have 1 to 500 characters, without NUL or lone surrogates.")
    return uuid


def _entry_text(entry: Mapping[str, Any], place: int) -> str:
    """Serialize an entry for storage; Invalid names the entry that cannot be stored."""
    if is_deeper(entry, MOST_LEVELS):
        raise Invalid(f"Entry {place} has more than {MOST_LEVELS} levels.")
    try:
        return journal_text(entry)
    except ValueError as wrong:
        raise Invalid(f"Entry {place} is not JSON: {wrong}.") from wrong


def _hashes(where: Mapping[str, Any], *, after: int, limit: int) -> list[bytes]:
    found = rows(_FILES["hashes_of_lines"], {**where, "after": after, "limit": limit})
    return [bytes(each) for (each,) in found]


def _version_from(where: Mapping[str, Any], *, until: int) -> str:
    """Find or create a version of a file with the same first `until` lines."""
    base, _, number = str(where["subpath"]).rpartition("#")
    name, count = (base, int(number)) if number.isdigit() else (str(where["subpath"]), 1)
    begin = _hashes(where, after=0, limit=until)
    while True:
        count += 1
        version = f"{name}#{count}"
        known = _hashes({**where, "subpath": version}, after=0, limit=until)
        if not known and not _hashes({**where, "subpath": version}, after=0, limit=1):
            execute(_FILES["copy_entries"], {**where, "to": version, "until": until})
            return version
        if known == begin:
            return version


def _free_uuids(where: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return each line's uuid, or None if it is stored already or repeated."""
    uuids = [each if isinstance(each := line.get("uuid"), str) and is_name(each) else None for line in lines]
    wanted = [uuid for uuid in uuids if uuid is not None]
    taken = {uuid for (uuid,) in rows(_FILES["stored_uuids"], {**where, "uuids": wanted})} if wanted else set()
    free: list[str | None] = []
    for uuid in uuids:
        free.append(None if uuid in taken else uuid)
        taken.add(uuid)
    return free
