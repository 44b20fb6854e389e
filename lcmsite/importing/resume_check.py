"""Check that a file continues what an earlier import read of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from django.db.models import QuerySet

from conversations.content import hashing
from conversations.content.flattening import flattened
from conversations.errors import Conflict
from conversations.models import Conversation, Message
from conversations.scope import Scope
from conversations.types import NewMessage
from lcmsite.importing.history import KEYS_BEGIN, Entry

AT_ONCE = 1000
_NOTHING = hashing.content_hash("")
_WHAT_TO_DO = (
    "Nothing of this run is stored. Put the file back as it was, and add to it at its end alone; or import it into "
    "another session with --session."
)


class HistoryChanged(Conflict):
    """The file has changed: messages would be stored again, or out of order."""

    code = "history_changed"


@dataclass
class _Session:
    """One session of the file: its conversation, newest stored message, new texts."""

    conversation_id: int | None
    # The seq of the newest message that is in the file.
    stored_until: int = 0
    first_new: str = ""
    # Whether earlier imports stored messages after that; if so, the new texts of the file, by their hashes.
    has_more_stored: bool = False
    new_texts: Counter[bytes] = field(default_factory=Counter)


@dataclass(frozen=True)
class Comparison:
    """Compares a file with the stored messages, session by session.

    A message is identified by its line and its text. The store itself checks messages with keys of their own: it
    refuses another text under the same key.
    """

    scope: Scope
    _sessions: dict[str, _Session] = field(default_factory=dict)

    def check(self, entries: Iterator[Entry]) -> None:
        """Raise HistoryChanged unless the file continues what was imported.

        Either a message is not stored although a later one of its session is: it was edited since, and would be stored
        after its successors. Or most of what is new was imported from other lines: lines were inserted or removed
        before it, and all of it would be stored twice.
        """
        while batch := list(islice(entries, AT_ONCE)):
            ours = [entry for entry in batch if entry.message.idempotency_key is None]
            stored = self._stored(ours)
            for entry in ours:
                self._look_at(entry, stored.get((entry.session_id, entry.key)))
        for session in self._sessions.values():
            self._require_new(session)

    def _look_at(self, entry: Entry, seq: int | None) -> None:
        session = self._session(entry.session_id)
        if seq is not None:
            if session.first_new:
                raise HistoryChanged(
                    f"{session.first_new} is not what an earlier import has read there, as {entry.where}, behind it, "
                    f"is stored already. {_WHAT_TO_DO}"
                )
            session.stored_until = max(session.stored_until, seq)
            return
        if not session.first_new:
            session.first_new = entry.where
            session.has_more_stored = _imported(session).exists()
        if session.has_more_stored:
            session.new_texts[_hash_of(entry.message)] += 1

    def _require_new(self, session: _Session) -> None:
        """Raise HistoryChanged if most new texts were imported from other lines.

        Two files of one session share some texts; a file whose lines have moved shares nearly all.
        """
        texts = session.new_texts
        del texts[_NOTHING]
        count = again = 0
        if texts:
            for text in _imported(session).values_list("content_hash", flat=True).iterator(chunk_size=AT_ONCE):
                count += bytes(text) != _NOTHING
                if texts[bytes(text)] > 0:
                    texts[bytes(text)] -= 1
                    again += 1
        if again and 2 * again >= count:
            raise HistoryChanged(
                f"From {session.first_new} on, {again:,} of the {count:,} messages that an earlier import has stored "
                f"are in other lines now: something was put in before them, or taken out. {_WHAT_TO_DO}"
            )

    def _stored(self, entries: list[Entry]) -> dict[tuple[str, str], int]:
        """Return the seqs of stored messages by session and key."""
        keys: dict[str, list[str]] = {}
        for entry in entries:
            keys.setdefault(entry.session_id, []).append(entry.key)
        stored: dict[tuple[str, str], int] = {}
        for session_id, of_session in keys.items():
            if (conversation_id := self._session(session_id).conversation_id) is not None:
                known = Message.objects.filter(conversation_id=conversation_id, idempotency_key__in=of_session)
                stored |= {(session_id, str(key)): seq for key, seq in known.values_list("idempotency_key", "seq")}
        return stored

    def _session(self, session_id: str) -> _Session:
        if session_id not in self._sessions:
            rows = self.scope.narrow(Conversation.objects.filter(session_id=session_id))
            self._sessions[session_id] = _Session(rows.values_list("conversation_id", flat=True).first())
        return self._sessions[session_id]


def _imported(session: _Session) -> QuerySet[Message]:
    """Return the messages that imports stored after the newest one of the file."""
    if session.conversation_id is None:
        return Message.objects.none()
    return Message.objects.filter(
        conversation_id=session.conversation_id, seq__gt=session.stored_until, idempotency_key__startswith=KEYS_BEGIN
    ).order_by("seq")


def _hash_of(message: NewMessage) -> bytes:
    return hashing.content_hash(flattened(message.parts) if message.content is None else message.content)
