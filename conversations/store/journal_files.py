"""Store and return files of agent programs (hosts) in the journal, line by line.

A file is read again when it has grown. Stored lines are recognized by their position and hash: only new lines are
stored. A file that its host has rewritten is stored as another version, under its name with a number (`name#2`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from conversations.content.lossless_values import is_name, is_storable, require_names
from conversations.errors import NotFound
from conversations.scope import Scoped
from conversations.sql import load, rows
from conversations.store.journal import Journal, entry_text

_SQL = load("conversations/journal/files.sql")
_KEEP = load("conversations/journal/pages.sql")["insert_entries"]
_PAGE = 1_000
# Maximum number of files that an error names.
_LISTED = 100


@dataclass(frozen=True)
class JournalFiles(Scoped):
    """Stores the lines of hosts' files, and returns them."""

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
        texts = [entry_text(line, place) for place, line in enumerate(lines, start=after + 1)]
        hashes = [hashlib.sha256(text.encode("ascii")).digest() for text in texts]
        while True:
            where = {"id": conversation_id, "subpath": subpath}
            known = _hashes(where, after=after, limit=len(hashes))
            same = next(
                (place for place, pair in enumerate(zip(known, hashes, strict=False)) if pair[0] != pair[1]), None
            )
            if same is None:
                break
            subpath = _version_from(where, until=after + same)
        first = len(known)
        if texts[first:]:
            rows(_KEEP, {**where, "uuids": _free_uuids(where, lines[first:]), "entries": texts[first:]})
        return subpath

    def lines(self, *, conversation_id: int, subpath: str | None = None) -> Iterator[Mapping[str, Any] | None]:
        """Yield the lines of a file, and None for each erased line.

        The default is the newest version of the session's own file. Raises NotFound if there is no such file.
        """
        journal = Journal(self.scope)
        self.scope.conversation(conversation_id)
        where = {"id": conversation_id}
        if subpath is None:
            subpath = next((each for (each,) in rows(_SQL["newest_file"], where)), "")
        if not is_storable(subpath) or not _hashes({**where, "subpath": subpath}, after=0, limit=1):
            listed = journal.list_subpaths(conversation_id=conversation_id, limit=_LISTED)
            named = ", ".join(repr(each.subpath) for each in listed) or "none"
            raise NotFound(f"The journal of this conversation has no such transcript file. It has: {named}.")
        return self._lines(journal, conversation_id, subpath)

    def line(self, *, conversation_id: int, subpath: str, position: int) -> Mapping[str, Any] | None:
        """Return one line; None if it was erased or does not exist."""
        found = Journal(self.scope).list_entries(
            conversation_id=conversation_id, subpath=subpath, after_position=position - 1, limit=1
        )
        return found[0].entry if found and found[0].position == position else None

    @staticmethod
    def _lines(journal: Journal, conversation_id: int, subpath: str) -> Iterator[Mapping[str, Any] | None]:
        after = 0
        while page := journal.list_entries(
            conversation_id=conversation_id, subpath=subpath, after_position=after, limit=_PAGE
        ):
            yield from (each.entry for each in page)
            after = page[-1].position


def _hashes(where: Mapping[str, Any], *, after: int, limit: int) -> list[bytes]:
    found = rows(_SQL["hashes_of_lines"], {**where, "after": after, "limit": limit})
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
            rows(_SQL["copy_entries"], {**where, "to": version, "until": until})
            return version
        if known == begin:
            return version


def _free_uuids(where: Mapping[str, Any], lines: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """Return each line's uuid, or None if it is stored already or repeated."""
    uuids = [each if isinstance(each := line.get("uuid"), str) and is_name(each) else None for line in lines]
    wanted = [uuid for uuid in uuids if uuid is not None]
    taken = {uuid for (uuid,) in rows(_SQL["stored_uuids"], {**where, "uuids": wanted})} if wanted else set()
    free: list[str | None] = []
    for uuid in uuids:
        free.append(None if uuid in taken else uuid)
        taken.add(uuid)
    return free
