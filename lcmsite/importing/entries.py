"""One message of a file that is imported, and how it is recognized again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conversations.types import NewMessage

# The prefix of idempotency keys that an import gives to messages without one.
KEYS_BEGIN = "import:"


@dataclass(frozen=True)
class Entry:
    """One message of the file, with a key by which a later run recognizes it."""

    where: str
    session_id: str
    message: NewMessage
    key: str
    # The session's title, project and parent in the file; empty if it has none.
    title: str = ""
    project: str = ""
    parent_session_id: str = ""
    # The key of the message that this one follows; "" for the first message; None if it follows the one before it.
    after: str | None = None
    # In a transcript, the key of the message before this one.
    before: str = ""
    # The key of an earlier message with the same prompt, if this message repeats it.
    repeats: str = ""
    # The key of the session's head message, if the head is not the last message of the file.
    head: str = ""
    # The lines of the file after the previous message up to this one, for the journal.
    lines: tuple[Mapping[str, Any], ...] = ()
    # The session of the whole file; its journal gets the lines. Empty if the lines are only messages.
    file_session_id: str = ""
    # The program whose plugin may have recorded the message already, and the message's row in that program's form.
    program: str = ""
    row: Any = field(default=None, repr=False)

    @property
    def is_of_document(self) -> bool:
        """Whether the message is of a document, of which the journal stores no lines."""
        return self.row is not None and not self.file_session_id


def key_at(session_id: str, where: str, row: Any) -> str:
    """Return an idempotency key for a message at this position of this session."""
    text = json.dumps([session_id, where, row], sort_keys=True)
    return f"{KEYS_BEGIN}{hashlib.sha256(text.encode('ascii')).hexdigest()[:40]}"


class Prompt(NamedTuple):
    """A prompt: its key, the hash of its text, and whether it was queued."""

    key: str
    text: bytes
    is_queued: bool


@dataclass
class Prompts:
    """The prompts of a transcript on the path so far.

    A program may write a queued prompt several times, also as a line of the user. Such lines have a common id. Ids are
    of a session.
    """

    # By id: the first prompt with it, and its turn; in the order of turns.
    _by_id: dict[tuple[str, str], tuple[Prompt, int]] = field(default_factory=dict)

    def repeated_by(self, prompt: Prompt, ids: Iterable[tuple[str, str]]) -> str:
        """Return the key of the earlier prompt that this one repeats, or ""."""
        found = (self._by_id[each][0] for each in ids if each in self._by_id)
        return next((each.key for each in found if self._is_same(prompt, each)), "")

    def add(self, prompt: Prompt, ids: Iterable[tuple[str, str]], *, turn: int) -> None:
        for each in ids:
            self._by_id.setdefault(each, (prompt, turn))

    def go_back(self, turn: int) -> None:
        """Forget the prompts after that turn, as another branch begins there."""
        while self._by_id and next(reversed(self._by_id.values()))[1] > turn:
            self._by_id.popitem()

    @staticmethod
    def _is_same(prompt: Prompt, earlier: Prompt) -> bool:
        return prompt.text == earlier.text and (prompt.is_queued or earlier.is_queued)
