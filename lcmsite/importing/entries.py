"""One message of a file that is imported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

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


def key_at(session_id: str, where: str, row: Any) -> str:
    """Return an idempotency key for a message at this position of this session."""
    text = json.dumps([session_id, where, row], sort_keys=True)
    return f"{KEYS_BEGIN}{hashlib.sha256(text.encode('ascii')).hexdigest()[:40]}"
