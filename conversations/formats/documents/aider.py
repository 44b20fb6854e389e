"""The chat history of aider in a directory: `.aider.chat.history.md`. Pure.

    # aider chat started at 2026-01-31 12:00:00
    #### what the user asked
    what the model answered
    > what aider and its commands printed

The file is Markdown for people: an answer that contains such lines itself is split at them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import PurePath

from conversations.formats.documents.sessions import HostSession, SessionMessage, name_of
from conversations.types import NewMessage, Role

_FILE_NAME = ".aider.chat.history.md"
_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)\s*")
_USER, _PRINTED = "####", ">"


def is_start(line: str) -> bool:
    """Whether this line begins a chat."""
    return _START.fullmatch(line) is not None


def sessions_of(lines: Iterable[str], path: PurePath) -> Iterator[HostSession]:
    """Yield one session for the directory of the file, with all of its chats."""
    directory = str(path.parent)
    is_own = path.name == _FILE_NAME
    yield HostSession(
        session_id=f"aider:{directory}" if is_own else name_of(path),
        messages=tuple(SessionMessage(message, message.content) for message in _messages(lines)),
        project=directory if is_own else "",
    )


def _messages(lines: Iterable[str]) -> Iterator[NewMessage]:
    """Yield the messages; times have no zone in the file, and are read as UTC."""
    started: datetime | None = None
    for kind, group in groupby(_marked(lines), key=lambda each: each[0]):
        texts = [text for _, text in group]
        if kind == "start":
            started = datetime.fromisoformat(texts[-1]).replace(tzinfo=UTC)
            continue
        if content := "\n".join(texts).strip("\n"):
            yield NewMessage(Role(kind), content=content, created_at=started)


def _marked(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each line's role and unmarked text; blank lines keep the last role."""
    kind = "assistant"
    for line in lines:
        line = line.rstrip("\r\n")
        if start := _START.fullmatch(line):
            kind = "start"
            yield kind, start[1]
            continue
        text = line
        if line.startswith(f"{_USER} ") or line == _USER:
            kind, text = "user", line.removeprefix(_USER).removeprefix(" ")
        elif line.startswith(_PRINTED):
            kind, text = "tool", line.removeprefix(_PRINTED).removeprefix(" ")
        elif line.strip():
            kind = "assistant"
        elif kind == "start":
            continue
        # Two spaces at the end of a line are a line break in Markdown, no text.
        yield kind, text.removesuffix("  ") if kind in ("user", "tool") else text
