"""Whether a file is still what an earlier import has read of it: asked before a second run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from conversations.errors import Conflict
from conversations.models import Conversation, Message
from conversations.scope import Scope
from lcmsite.importing.history import Entry

AT_ONCE = 1000


@dataclass(frozen=True)
class Comparison:
    """The file beside what is stored, session by session."""

    scope: Scope
    _ids: dict[str, int | None] = field(default_factory=dict)
    _first_new: dict[str, str] = field(default_factory=dict)

    def check(self, entries: Iterator[Entry]) -> None:
        """Conflict, naming its place, for a message that is not stored although one behind it in its session is.

        It was edited since, or put in: stored now, it would stand behind what was said after it. Messages with keys of
        their own are left to the store, which refuses another text under the same key.
        """
        while batch := list(islice(entries, AT_ONCE)):
            ours = [entry for entry in batch if entry.message.idempotency_key is None]
            stored = self._stored(ours)
            for entry in ours:
                if (entry.session_id, entry.key) not in stored:
                    self._first_new.setdefault(entry.session_id, entry.where)
                elif (place := self._first_new.get(entry.session_id)) is not None:
                    raise Conflict(
                        f"{place} is not what an earlier import has read there, as {entry.where}, behind it, is stored "
                        "already. Put the file back as it was, or import it into another session with --session."
                    )

    def _stored(self, entries: list[Entry]) -> set[tuple[str, str]]:
        keys: dict[str, list[str]] = {}
        for entry in entries:
            keys.setdefault(entry.session_id, []).append(entry.key)
        stored = set()
        for session_id, of_session in keys.items():
            if (conversation_id := self._id(session_id)) is not None:
                known = Message.objects.filter(conversation_id=conversation_id, idempotency_key__in=of_session)
                stored |= {(session_id, str(key)) for key in known.values_list("idempotency_key", flat=True)}
        return stored

    def _id(self, session_id: str) -> int | None:
        if session_id not in self._ids:
            rows = self.scope.narrow(Conversation.objects.filter(session_id=session_id))
            self._ids[session_id] = rows.values_list("conversation_id", flat=True).first()
        return self._ids[session_id]
