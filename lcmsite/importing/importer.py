"""Import a history into conversations, in batches of one transaction each."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from operator import attrgetter
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.fields.json import KT

from compaction.hosts.branching import Branches
from conversations.content import hashing
from conversations.content.flattening import content_of, sizes_beside_texts
from conversations.errors import Conflict, Invalid
from conversations.formats.abridged import Place, abridged
from conversations.formats.codex import rewound_to
from conversations.models import Conversation, Message
from conversations.store.conversations import ConversationStore
from conversations.store.injected import without_injected
from conversations.store.journal import Journal
from conversations.store.read import seqs_of_keys
from conversations.types import ConversationRecord, NewMessage, PartType
from lcmsite.importing.entries import KEYS_BEGIN, Entry
from lcmsite.importing.history import History
from lcmsite.importing.plugin_sessions import PREFIXES, plugin_messages
from lcmsite.importing.resume_check import HistoryChanged, require_continued

BATCH = 500
# In the metadata of a session whose parent was not stored yet: the parent's session. Clients do not use this name.
_PARENT = "lcm_parent_session"


@dataclass
class ImportedConversation:
    """Counts of a conversation's messages: stored by this run, and stored before."""

    conversation_id: int
    session_id: str
    created: int = 0
    stored_before: int = 0


@dataclass
class _JournalFile:
    """A file in a conversation's journal, and how many of its lines were read."""

    conversation_id: int
    subpath: str
    line_count: int = 0


@dataclass
class Importer:
    """Imports the entries of a history into the conversations of their sessions."""

    store: ConversationStore
    history: History
    # The project of all conversations; empty to use that of each session in the file.
    project: str = ""
    _found: dict[str, ImportedConversation] = field(default_factory=dict)
    _is_compared: bool = False
    # By session: whether its host's plugin recorded it, and the plugin's keys by the keys in the file.
    _recorded: dict[str, bool] = field(default_factory=dict)
    _plugin_keys: dict[str, dict[str, str]] = field(default_factory=dict)
    # Whether sessions were created since `_link_sessions` ran.
    _has_new: bool = False
    # By session: the file in the journal of that session.
    _files: dict[str, _JournalFile] = field(default_factory=dict)
    # By session with a changed message: where that message is in the file.
    _changed: dict[str, str] = field(default_factory=dict)
    # Sessions of a document with a message that cannot be stored.
    _refused: set[str] = field(default_factory=set)
    # The keys of messages that an earlier version of LCM did not read, each with the key of the message before it. They
    # stay in the journal.
    _unread: dict[str, str] = field(default_factory=dict)
    # The keys of such messages whose prompt is stored from a later line.
    _stored_later: set[str] = field(default_factory=set)

    def run(self) -> list[ImportedConversation]:
        """Store everything, committing each batch before the next is read.

        Messages of an earlier run are skipped. Raises HistoryChanged if the file differs from what that run read:
        before anything is stored, unless the file begins with new sessions. If a message has changed under the id that
        its program gave it, or a conversation of an export is malformed, the other conversations are stored first. Read
        errors propagate; earlier batches stay stored.
        """
        size = min(BATCH, self.store.policy.max_batch_messages)
        entries = self.history.entries()
        while batch := list(islice(entries, size)):
            with transaction.atomic():
                self._write([each for entry in batch for each in self._as_recorded(entry)])
            if self._has_new:
                # After the commit: another process may import a parent or a child at the same time, and one sees both.
                self._link_sessions()
        for session_id, keys in self._plugin_keys.items():
            conversation = self._found.get(session_id)
            if conversation is not None and conversation.created:
                # The session may have returned from a branch that the plugin missed: move the head to the last message.
                self._move_head(conversation, next(reversed(keys.values())))
        for session_id, title in self.history.titles().items():
            if session_id in self._found:
                self._set_title(self._found[session_id].conversation_id, title)
        if behind := self.history.take_lines():
            for file in self._files.values():
                self._keep_lines(file, behind)
        if self._changed:
            places = "; ".join(islice(self._changed.values(), 20))
            raise HistoryChanged(
                f"{self.history.path.name}: Since an earlier import, these messages have changed: {places}. Their "
                f"conversations ({len(self._changed):,}) stay as they are stored; all others are imported. To store "
                "the changed messages, too, import the file into another workspace with --workspace."
            )
        if refused := self.history.refused:
            raise Invalid(
                f"{refused[0]} The file has {len(refused):,} such conversations; all others are imported.",
                code="malformed_history",
            )
        return list(self._found.values())

    def _write(self, batch: list[Entry]) -> None:
        by_session: dict[str, list[Entry]] = {}
        for entry in self._kept_whole(batch):
            by_session.setdefault(entry.session_id, []).append(entry)
        for session_id, entries in by_session.items():
            if session_id in self._changed or session_id in self._refused:
                continue
            is_new = session_id not in self._found
            try:
                with suppress(_Changed), transaction.atomic():
                    self._write_session(session_id, entries)
            except Invalid as wrong:
                if not entries[0].is_of_document:
                    raise
                if is_new:
                    self._found.pop(session_id, None)
                self._refused.add(session_id)
                self.history.refused.append(wrong.detail)

    def _write_session(self, session_id: str, entries: list[Entry]) -> None:
        conversation = self._conversation(session_id, entries[0])
        for run in _runs([entry for entry in entries if not self._is_left_out(entry)]):
            if run[0].after is not None:
                self._move_to(conversation, run)
            else:
                self._rewind(conversation, run)
            self._append(conversation, run)
        if entries[0].head and conversation.created:
            self._move_head(conversation, entries[0].head)

    def _is_left_out(self, entry: Entry) -> bool:
        """Whether an entry stays in the journal: unread earlier, or a prompt again."""
        if entry.key in self._unread:
            return True
        if not entry.repeats:
            return False
        if entry.repeats not in self._unread or entry.repeats in self._stored_later:
            return True
        self._stored_later.add(entry.repeats)
        return False

    def _as_recorded(self, entry: Entry) -> Iterator[Entry]:
        """Yield a message as the plugin stores it, if the plugin recorded the session."""
        parent = entry.parent_session_id
        if self._is_recorded(entry.program, parent):
            parent = f"{PREFIXES[entry.program]}{parent}"
        if not self._is_recorded(entry.program, entry.session_id):
            yield replace(entry, parent_session_id=parent)
            return
        session_id = f"{PREFIXES[entry.program]}{entry.session_id}"
        keys = self._plugin_keys.setdefault(session_id, {"": ""})
        # If the entry names no predecessor, it follows the newest message, whose key is the last one.
        newest = next(reversed(keys.values())) if entry.after is None else keys.get(entry.after, "")
        # Text that LCM injected is not stored, so no message may follow it.
        for message in without_injected(plugin_messages(entry.program, entry.row)).messages:
            key = message.idempotency_key or ""
            yield replace(
                entry,
                session_id=session_id,
                parent_session_id=parent,
                message=message,
                key=key,
                after=newest,
                head="",
                # The journal keeps lines only of sessions that no plugin recorded.
                lines=(),
                file_session_id="",
            )
            newest = key
        keys.pop(entry.key, None)
        keys[entry.key] = newest

    def _is_recorded(self, program: str, session_id: str) -> bool:
        """Whether a plugin of this program has recorded this session."""
        if not program or not session_id:
            return False
        name = f"{PREFIXES[program]}{session_id}"
        if name not in self._recorded:
            self._recorded[name] = self._sessions(session_id=name).exists()
        return self._recorded[name]

    def _kept_whole(self, batch: list[Entry]) -> Iterator[Entry]:
        """Store the file's lines in the journal; yield entries abridged to fit messages."""
        for session_id, group in groupby(batch, key=attrgetter("file_session_id")):
            entries = list(group)
            if not session_id:
                yield from entries
                continue
            # Call this first: it compares the file with an earlier run before anything is written.
            home = self._conversation(session_id, entries[0])
            stem = self.history.stem
            # A file named after its session, as hosts do, is the session's own (no subpath).
            is_own = session_id.partition(":")[0] in stem or stem in session_id
            file = self._files.setdefault(session_id, _JournalFile(home.conversation_id, "" if is_own else stem))
            position = file.line_count
            self._keep_lines(file, [line for entry in entries for line in entry.lines])
            for entry in entries:
                position += len(entry.lines)
                place = Place(file.subpath, position)
                message = abridged(entry.message, place, most=self.store.policy.max_metadata_bytes)
                yield replace(entry, message=message)

    def _keep_lines(self, file: _JournalFile, lines: Sequence[Mapping[str, Any]]) -> None:
        file.subpath = Journal(self.store.scope).keep_lines(
            conversation_id=file.conversation_id, subpath=file.subpath, lines=lines, after=file.line_count
        )
        file.line_count += len(lines)

    def _append(self, conversation: ImportedConversation, entries: list[Entry]) -> None:
        large = {entry.key for entry in entries if self._is_too_large(entry)}
        if large:
            # Locked before it is read: another import may store the same rows.
            self.store.scope.conversation(conversation.conversation_id, locked=True)
        stored = seqs_of_keys(conversation.conversation_id, [entry.key for entry in entries])
        rows = Message.objects.filter(conversation_id=conversation.conversation_id, seq__in=stored.values())
        hashes = {seq: bytes(content_hash) for seq, content_hash in rows.values_list("seq", "content_hash")}
        # Skip what is stored, although another version of LCM or of the program may have written it differently. The
        # store compares the others: it refuses another text under the same key.
        known = {each.key for each in entries if each.key in stored and _is_known(each, hashes[stored[each.key]])}
        conversation.stored_before += len(known)
        new = [entry for entry in entries if entry.key not in known]
        messages = [
            replace(
                self._abridged(conversation, entry, stored) if entry.key in large else entry.message,
                idempotency_key=entry.key,
            )
            for entry in new
        ]
        if not messages:
            return
        try:
            appended = self.store.append_messages(
                conversation_id=conversation.conversation_id, messages=messages
            ).messages
        except (Invalid, Conflict) as wrong:
            key = wrong.context.get("idempotency_key", "")
            if key.startswith(KEYS_BEGIN):
                self._changed[conversation.session_id] = next(each.where for each in entries if each.key == key)
                raise _Changed from wrong
            span = f"{self.history.path.name}, from {entries[0].where} to {entries[-1].where}"
            raise type(wrong)(f"{span}: {wrong.detail}", code=wrong.code) from wrong
        conversation.created += sum(message.created for message in appended)
        conversation.stored_before += sum(not message.created for message in appended)

    def _is_too_large(self, entry: Entry) -> bool:
        """Whether a document's message has more metadata than the store accepts."""
        if not entry.is_of_document or not isinstance(entry.row, Mapping):
            return False
        return sum(size for _, size in sizes_beside_texts(entry.message)) > self.store.policy.max_metadata_bytes

    def _abridged(self, conversation: ImportedConversation, entry: Entry, stored: Collection[str]) -> NewMessage:
        """Abridge a message; append its row to the journal if its key is not stored."""
        journal, conversation_id, subpath = Journal(self.store.scope), conversation.conversation_id, self.history.stem
        last = journal.append_entries(conversation_id=conversation_id, entries=[], subpath=subpath).last_position
        # A stored message was changed or erased, and the text of an erased one must not come back.
        if entry.key not in stored:
            journal.keep_lines(conversation_id=conversation_id, subpath=subpath, lines=[entry.row], after=last)
        return abridged(entry.message, Place(subpath, last + 1), most=self.store.policy.max_metadata_bytes)

    def _move_to(self, conversation: ImportedConversation, run: list[Entry]) -> None:
        """Move the head to where the new entries of a run begin, if there are any."""
        # Locked before it is read: another process, such as a plugin, may store the entries meanwhile.
        self.store.scope.conversation(conversation.conversation_id, locked=True)
        known = seqs_of_keys(conversation.conversation_id, [entry.key for entry in run])
        if new := next((entry for entry in run if entry.key not in known), None):
            key = new.after or ""
            while key in self._unread:
                key = self._unread[key]
            self._move_head(conversation, key)

    def _rewind(self, conversation: ImportedConversation, run: list[Entry]) -> None:
        """Move the head back if this begins a file of Codex that follows a rewind."""
        ordinals = (rewound_to(line, self.history.stem) for line in run[0].lines)
        ordinal = next((each for each in ordinals if each is not None), None)
        if ordinal is None:
            return
        found = self.store.scope.conversation(conversation.conversation_id, locked=True)
        if seqs_of_keys(found.pk, [entry.key for entry in run]):
            return
        before = found.messages.filter(metadata__codex__add__ordinal__lt=ordinal).order_by("-seq")
        seqs = before.values_list("seq", flat=True).iterator(chunk_size=BATCH)
        seq = next(filter(found.is_active, seqs), 0)
        Branches(self.store).move_head(conversation_id=found.pk, head_seq=seq, reason="imported branch")

    def _move_head(self, conversation: ImportedConversation, key: str) -> None:
        """Move the head to the message with this key, if stored; to the start if ""."""
        seq = seqs_of_keys(conversation.conversation_id, [key]).get(key) if key else 0
        if seq is not None:
            Branches(self.store).move_head(
                conversation_id=conversation.conversation_id, head_seq=seq, reason="imported branch"
            )

    def _conversation(self, session_id: str, entry: Entry) -> ImportedConversation:
        if session_id not in self._found:
            parent = entry.parent_session_id
            is_waiting = bool(parent) and not self._sessions(session_id=parent).exists()
            record = self.store.open_conversation(
                session_id=session_id,
                title=entry.title or None,
                project=self.project or None,
                metadata={_PARENT: parent} if is_waiting else None,
            )
            self._has_new = self._has_new or record.created
            if record.counters.message_count and not self._is_compared:
                # An earlier run may have imported the file: compare all of it with what is stored, once.
                self._is_compared = True
                self._unread = require_continued(self.history, self.store.scope)
            self._place(record, entry, parent="" if is_waiting else parent)
            self._found[session_id] = ImportedConversation(record.conversation_id, session_id)
        return self._found[session_id]

    @transaction.atomic
    def _set_title(self, conversation_id: int, title: str) -> None:
        """Set the title of a conversation that has none."""
        if self.store.scope.conversation(conversation_id, locked=True).title is None:
            self.store.change_conversation(conversation_id=conversation_id, title=title)

    def _sessions(self, **where: Any) -> QuerySet[Conversation]:
        return self.store.scope.narrow(Conversation.objects.filter(**where))

    def _link_sessions(self) -> None:
        """Make stored sessions the parents of those that were imported before them."""
        self._has_new = False
        # No index finds them, so they are read once for each batch: a file may have thousands of sessions.
        waiting = self._sessions(parent=None, metadata__has_key=_PARENT).order_by("conversation_id")
        parents = dict(waiting.values_list("session_id", KT(f"metadata__{_PARENT}")))
        stored = set(self._sessions(session_id__in=set(parents.values())).values_list("session_id", flat=True))
        for child, parent in parents.items():
            if parent in stored:
                self._set_parent(child, parent)

    def _place(self, record: ConversationRecord, entry: Entry, *, parent: str) -> None:
        """Set a conversation's project and parent, if it has none."""
        project = entry.project if record.project is None else ""
        parent = parent if record.parent_id is None else ""
        if project:
            self.store.open_conversation(session_id=record.session_id, project=project)
        if parent:
            self._set_parent(record.session_id, parent)

    def _set_parent(self, session_id: str, parent: str) -> None:
        # Files may name each other's sessions as parents. That is no reason to refuse their messages.
        with suppress(Invalid):
            self.store.open_conversation(session_id=session_id, parent_session_id=parent)


class _Changed(Exception):
    """A session has a changed message, which is in `_changed`."""


def _is_known(entry: Entry, stored_hash: bytes) -> bool:
    """Whether the store need not compare a message with the stored one.

    Without a key of its own, a message is identified by its line and text. Earlier versions of LCM left out the texts
    of attachments. A program may add fields to a message that it identifies by an id, and a plugin may record it in
    another form.
    """
    message = entry.message
    is_attached = any(part.part_type is PartType.FILE and part.text_content for part in message.parts)
    if message.idempotency_key is None or is_attached:
        return True
    if not entry.key.startswith(KEYS_BEGIN):
        return entry.after is not None
    return hashing.content_hash(content_of(message)) == stored_hash


def _runs(entries: list[Entry]) -> Iterator[list[Entry]]:
    """Yield groups of entries in which each entry follows the one before it."""
    run: list[Entry] = []
    for entry in entries:
        if run and (entry.after is None) != (run[0].after is None) or run and entry.after not in (None, run[-1].key):
            yield run
            run = []
        run.append(entry)
    if run:
        yield run
