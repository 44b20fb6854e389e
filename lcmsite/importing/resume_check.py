"""Check that a file continues what an earlier import read of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain, groupby, islice
from operator import attrgetter

from django.db.models import Q, QuerySet

from conversations.content import hashing
from conversations.content.flattening import content_of
from conversations.errors import Conflict
from conversations.formats.claude_code import QUEUED, is_queued
from conversations.formats.codex import has_ordinal
from conversations.models import Conversation, Message, MessagePart
from conversations.scope import Scope
from conversations.store.injected import without_injected
from conversations.store.read import seqs_of_keys
from lcmsite.importing.entries import KEYS_BEGIN, Entry
from lcmsite.importing.history import History

AT_ONCE = 1000
_NOTHING = hashing.content_hash("")
_WHAT_TO_DO = (
    "Nothing more of this file is stored. Restore the file and add lines only at its end, or import it into another "
    "session with --session."
)


class HistoryChanged(Conflict):
    """The file has changed: importing it would store messages twice or out of order."""

    code = "history_changed"


@dataclass
class _Session:
    """The comparison of one session in the file with its stored conversation."""

    file: str
    # 0 for a session that is not stored yet.
    conversation_id: int
    # The newest stored message at the beginning: later ones are of another process, which may import the same file.
    newest_seq: int
    # The seq of the newest stored message that is in the file.
    stored_until: int = 0
    first_new: str = ""
    # Whether imports stored messages after that seq; if so, hashes of the file's new texts.
    has_more_stored: bool = False
    new_texts: Counter[tuple[bytes, datetime | None]] = field(default_factory=Counter)
    # Whether a text with another time is another message: another file of a session of Codex may repeat texts.
    is_by_time: bool = False
    # Queued prompts after the newest stored message of the file: they are new, or an earlier version of LCM did not
    # read them.
    maybe_unread: list[Entry] = field(default_factory=list)
    # The keys of messages that an earlier version of LCM did not read, each with the key of the message before it.
    unread: dict[str, str] = field(default_factory=dict)
    # The keys of such messages whose prompt is stored from a later line.
    stored_later: set[str] = field(default_factory=set)

    def imported_later(self) -> QuerySet[Message]:
        """Return the messages that imports stored after the newest one of the file.

        Also the erased ones, whose keys no longer tell who stored them; the hashes of their texts remain.
        """
        span = (self.stored_until + 1, self.newest_seq)
        later = Message.objects.filter(conversation_id=self.conversation_id, seq__range=span)
        imported = Q(idempotency_key__startswith=KEYS_BEGIN) | Q(erased_by__isnull=False)
        return later.filter(imported).order_by("seq")

    def take(self, entry: Entry, seq: int | None) -> None:
        """Compare an entry; `seq` is None if it is not stored. Raises HistoryChanged."""
        if seq is not None and seq > self.newest_seq:
            return
        if seq is not None:
            differs = self.first_new
            if self.maybe_unread and self._has_queued(before=seq):
                differs = differs or self.maybe_unread[0].where
            if differs:
                raise HistoryChanged(
                    f"{self.file}, {differs} differs from what an earlier import read there, but {entry.where}, "
                    f"after it, is stored already. {_WHAT_TO_DO}"
                )
            self.stored_until = max(self.stored_until, seq)
            self.unread.update((each.key, each.before) for each in self.maybe_unread)
            self.maybe_unread.clear()
            if entry.repeats in self.unread:
                self.stored_later.add(entry.repeats)
            return
        if not without_injected([entry.message]).messages:
            # LCM injected the whole message, so it is never stored.
            return
        if entry.repeats and (entry.repeats not in self.unread or entry.repeats in self.stored_later):
            # The prompt is stored from an earlier line, or will be, unless that line is unread.
            if any(each.key == entry.repeats for each in self.maybe_unread):
                self.maybe_unread.append(entry)
            return
        if is_queued(entry.row) and not self.first_new:
            self.maybe_unread.append(entry)
            return
        self._count_new([entry, *self.maybe_unread])
        self.maybe_unread.clear()

    def _count_new(self, entries: list[Entry]) -> None:
        if not self.first_new and entries:
            self.first_new = entries[0].where
            self.has_more_stored = self.imported_later().exists()
            self.is_by_time = has_ordinal(entries[0].row)
        if self.has_more_stored:
            for message in (entry.message for entry in entries):
                self.new_texts[self._text_key(hashing.content_hash(content_of(message)), message.created_at)] += 1

    def _has_queued(self, *, before: int) -> bool:
        """Whether a queued prompt that is not in the file is stored before that seq."""
        where = {"message__conversation_id": self.conversation_id, f"metadata__{QUEUED}": True}
        return MessagePart.objects.filter(message__seq__range=(self.stored_until + 1, before - 1), **where).exists()

    def require_new(self) -> None:
        """Raise HistoryChanged if most later stored texts are among the new texts.

        In that case lines have moved, and would be stored twice. Two files of one session share only some texts.
        """
        self._count_new(self.maybe_unread)
        texts = Counter({key: count for key, count in self.new_texts.items() if key[0] != _NOTHING})
        count = again = 0
        if texts:
            later = self.imported_later().values_list("content_hash", "created_at")
            for content_hash, created_at in later.iterator(chunk_size=AT_ONCE):
                key = self._text_key(bytes(content_hash), created_at)
                count += key[0] != _NOTHING
                if texts[key] > 0:
                    texts[key] -= 1
                    again += 1
        if again and 2 * again >= count:
            raise HistoryChanged(
                f"{self.file}, from {self.first_new} on: {again:,} of the {count:,} messages that an earlier import "
                f"stored are in other lines now: lines were inserted or removed before them. {_WHAT_TO_DO}"
            )

    def _text_key(self, content_hash: bytes, created_at: datetime | None) -> tuple[bytes, datetime | None]:
        return content_hash, created_at if self.is_by_time else None


def require_continued(history: History, scope: Scope) -> dict[str, str]:
    """Raise HistoryChanged unless a file continues what was imported of it.

    Returns the keys of messages that an earlier version of LCM did not read: stored now, they would follow later ones.
    Each has the key of the message before it.

    It reads the whole file again. There are two cases. A message is not stored, but a later one of its session is: the
    message was edited, and would be stored after its successors. Or most new messages were imported before from other
    lines: lines were inserted or removed before them, and they would be stored twice. A message is identified by its
    line and text. Messages with keys of their own are not checked here: the store refuses another text under the same
    key.
    """
    sessions: dict[str, _Session] = {}
    entries = History(history.path, history.session, history.format).entries()
    while batch := list(islice(entries, AT_ONCE)):
        ours = (entry for entry in batch if entry.message.idempotency_key is None)
        for session_id, group in groupby(ours, key=attrgetter("session_id")):
            if session_id not in sessions:
                rows = scope.narrow(Conversation.objects.filter(session_id=session_id))
                conversation_id, next_seq = rows.values_list("conversation_id", "next_seq").first() or (0, 1)
                sessions[session_id] = _Session(history.path.name, conversation_id, next_seq - 1)
            found = list(group)
            seqs = seqs_of_keys(sessions[session_id].conversation_id, [entry.key for entry in found])
            for entry in found:
                sessions[session_id].take(entry, seqs.get(entry.key))
    for session in sessions.values():
        session.require_new()
    return dict(chain.from_iterable(session.unread.items() for session in sessions.values()))
