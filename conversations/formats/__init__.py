"""Message formats of vendors and transcripts, in both directions. Pure.

`from_x` reads a row into a message and `to_x` returns the same row: keys without a column of the store are kept in the
metadata under the format's name (see `foreign_rows`). `render_x` writes an assembled context as the vendor's request;
its `repairs` list every change that the API made necessary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from conversations.content.lossless_values import is_name
from conversations.formats import anthropic, claude_code, codex, openai_chat, openai_responses, pi
from conversations.formats.foreign_rows import with_row_metadata
from conversations.formats.neutral import from_neutral, render_neutral
from conversations.formats.rendered import Item, MessageFormat, Rendered
from conversations.types import NewMessage, NewPart

Row = Mapping[str, Any]


class Format(StrEnum):
    LCM = "lcm"
    NEUTRAL = "neutral"
    OPENAI_CHAT = "openai"
    OPENAI_RESPONSES = "openai_responses"
    ANTHROPIC = "anthropic"


# For these, null means absent.
_NOT_NULL = ("parts", "metadata", "name")
MESSAGE_FIELDS = frozenset(each.name for each in fields(NewMessage)) | {"name"}
PART_FIELDS = frozenset(each.name for each in fields(NewPart))


def as_fields(row: Any) -> Any:
    """Rename and drop keys of a JSON object so that they are fields of `NewMessage`."""
    if type(row) is not dict:
        return row
    if any(row.get(name, ()) is None for name in _NOT_NULL):
        row = {name: value for name, value in row.items() if value is not None or name not in _NOT_NULL}
    if "name" in row and row.get("author") is None:
        row = {**row, "author": row["name"]}
        del row["name"]
    if row.get("content") is None and not row.get("parts"):
        raise ValueError("A message needs content or parts.")
    return row


_ADAPTER: TypeAdapter[NewMessage] = TypeAdapter(Annotated[NewMessage, BeforeValidator(as_fields)])


def from_native(row: Mapping[str, Any]) -> NewMessage:
    """Parse a message in LCM's own JSON format; ValueError if it is invalid."""
    try:
        return _ADAPTER.validate_python(row)
    except ValidationError as wrong:
        raise ValueError(str(wrong)) from None


READERS: Mapping[str, Callable[[Row], NewMessage]] = {
    Format.LCM: from_native,
    Format.NEUTRAL: from_neutral,
    Format.OPENAI_CHAT: openai_chat.from_openai_chat,
    Format.OPENAI_RESPONSES: openai_responses.from_openai_responses,
    Format.ANTHROPIC: anthropic.from_anthropic,
}
_VENDORS = {Format.OPENAI_CHAT: openai_chat, Format.OPENAI_RESPONSES: openai_responses, Format.ANTHROPIC: anthropic}
_KEY = "idempotency_key"
# LCM's fields of a message that no vendor's format has, with the types of their values: a time as a number, for
# example, is the vendor's own. The neutral format has all of these fields but the first.
_OWN_FIELDS: Mapping[str, type] = {_KEY: object, "created_at": str, "author": str, "metadata": dict}


def read_message(row: Row, form: Format) -> NewMessage:
    """Parse a message; ValueError if it is invalid.

    In every format, a message may have LCM's own fields beside those of the format.
    """
    if form is Format.LCM:
        return from_native(row)
    own_fields = {_KEY: object} if form is Format.NEUTRAL else _OWN_FIELDS
    given = {name: row[name] for name, kind in own_fields.items() if name in row and isinstance(row[name], kind)}
    if not given:
        return READERS[form](row)
    try:
        own = _ADAPTER.validate_python({"role": "user", "content": "", **given})
    except ValidationError as wrong:
        found = wrong.errors(include_url=False)[0]
        raise ValueError(f"{found['loc'][0]}: {found['msg'].removeprefix('Value error, ')}") from None
    sent = {name: value for name, value in row.items() if name != _KEY}
    message = replace(READERS[form](sent), idempotency_key=own.idempotency_key)
    if given.keys() == {_KEY}:
        return message
    vendor = _VENDORS[form]
    # The vendor's own name of the author comes first.
    message = replace(message, created_at=own.created_at, author=message.author or own.author, metadata={})
    return with_row_metadata(message, vendor.NOTE, sent, vendor.plain_row(message), own.metadata)


_MARKS: Mapping[Format, Mapping[str, str]] = {
    Format.ANTHROPIC: anthropic.MARKS,
    Format.OPENAI_CHAT: openai_chat.MARKS,
    Format.OPENAI_RESPONSES: dict.fromkeys(openai_responses.PIECES, "type"),
}


def require_own_format(row: Row, form: Format) -> None:
    """Raise ValueError if a message certainly has the format of another vendor.

    Anything unknown is accepted, because vendors add types of blocks.
    """
    content = row.get("content")
    pieces = [piece for piece in content if isinstance(piece, Mapping)] if isinstance(content, list) else []
    for other, marks in _MARKS.items():
        found = [piece["type"] for piece in pieces if marks.get(str(piece.get("type"))) in piece]
        if other is Format.OPENAI_CHAT:
            found += [key for key in sorted(openai_chat.KEYS) if row.get(key)]
        if found and other is not form:
            raise ValueError(
                f'This looks like a message in another format, by its {found[0]}: use "format": "{other}".'
            )


RENDERERS: Mapping[MessageFormat, Callable[[Iterable[Item]], Rendered]] = {
    MessageFormat.NEUTRAL: render_neutral,
    MessageFormat.OPENAI: openai_chat.render_openai_chat,
    MessageFormat.OPENAI_RESPONSES: openai_responses.render_openai_responses,
    MessageFormat.ANTHROPIC: anthropic.render_anthropic,
}


def detect(row: Any) -> Format | None:
    """Return the foreign format of a message; None if all formats read it alike.

    All formats read a message with only a role and a text alike. ValueError if the row is not a message.
    """
    if openai_responses.is_item(row):
        return Format.OPENAI_RESPONSES
    if not isinstance(row, Mapping) or "role" not in row:
        raise ValueError("This is not a message: it must be an object with a role.")
    if "parts" in row or "seq" in row:
        return Format.NEUTRAL
    content = row.get("content")
    pieces = content if isinstance(content, list) else []
    types = {str(piece.get("type")) for piece in pieces if isinstance(piece, Mapping)}
    if types & anthropic.TYPES:
        return Format.ANTHROPIC
    if types & openai_responses.PIECES:
        return Format.OPENAI_RESPONSES
    role = row["role"]
    is_chat = (
        not row.keys().isdisjoint(openai_chat.KEYS)
        or (isinstance(role, str) and role in openai_chat.OWN_ROLES)
        or bool(types & openai_chat.PIECES)
    )
    return Format.OPENAI_CHAT if is_chat else None


_SCHEME = re.compile(r"^[a-z][a-z0-9+.-]*://", re.IGNORECASE)
# `git@github.com:a/b.git`, the form of ssh without a scheme.
_SHORT = re.compile(r"^(?:[^@/\s]+@)?([^:/\s]+):(?!\d+/)(.+)$")


class Transcript(NamedTuple):
    """A transcript format that is recognized by any of its lines."""

    # Called only for an object with `type` and without `role`.
    is_line: Callable[[Row], bool]
    # Returns "" for a line that does not name its session.
    session_of: Callable[[Row], str]
    # Returns None for a line without a message. Raises ValueError, which names the field, for an invalid message.
    message_of: Callable[[Row], NewMessage | None]
    # Returns the parent session if the line belongs to a sub-agent's session, else "".
    parent_of: Callable[[Row], str] = lambda line: ""
    # Returns the ids of a line and of its predecessor ("" for none). None means that the line follows the line before
    # it in the file. So does the first line whose predecessor is unknown.
    place_of: Callable[[Row], tuple[str, str] | None] = lambda line: None
    # Whether a branch may begin with a line that has a message. If not, the line follows the one before it in the file.
    may_branch: Callable[[Row], bool] = lambda line: True
    # The program that writes these transcripts.
    name: str = ""
    # Returns the title in a line and the id of a line of its session ("" if it is this one); None for other lines.
    title_of: Callable[[Row], tuple[str, str] | None] = lambda line: None
    # Returns the ids of the prompt in a line with a message. Lines with a common id may repeat a prompt.
    prompt_ids: Callable[[Row], tuple[str, ...]] = lambda line: ()


TRANSCRIPTS = (
    Transcript(
        claude_code.is_line,
        claude_code.session_of,
        claude_code.from_claude_code,
        claude_code.parent_of,
        claude_code.place_of,
        claude_code.may_branch,
        title_of=claude_code.title_of,
        prompt_ids=claude_code.prompt_ids,
    ),
    Transcript(codex.is_line, codex.session_of, codex.from_codex, codex.parent_of),
    Transcript(pi.is_line, pi.session_of, pi.from_pi, place_of=pi.place_of, name="pi"),
)


def transcript_of(row: Any) -> Transcript | None:
    """Return the transcript format of this line, if it is one."""
    is_envelope = isinstance(row, Mapping) and isinstance(row.get("type"), str) and "role" not in row
    return next((each for each in TRANSCRIPTS if is_envelope and each.is_line(row)), None)


def project_of(line: Row) -> str:
    """Return the project that this line of a transcript names; empty for none.

    This is the git remote if the line names one, else the directory. Most programs name them in the first line of a
    session; Claude Code names the directory in every line.
    """
    of_session = line
    if isinstance(payload := line.get("payload"), Mapping):
        of_session = payload if line.get("type") == "session_meta" else {}
    git = of_session.get("git")
    remote = git.get("repository_url") if isinstance(git, Mapping) else None
    directory = of_session.get("cwd")
    found = ""
    if isinstance(remote, str):
        found = normal_remote(remote)
    if not found and isinstance(directory, str):
        # The root directory is no project: an export writes it if the conversation has none.
        found = directory.rstrip("/\\")
    return found if is_name(found) else ""


def normal_remote(remote: str) -> str:
    """Normalize a git remote to host/path, without scheme, user, port and `.git`."""
    remote = remote.strip()
    short = None if _SCHEME.match(remote) else _SHORT.match(remote)
    if short:
        remote = f"{short[1]}/{short[2]}"
    host, slash, path = _SCHEME.sub("", remote).partition("/")
    host = host.rpartition("@")[2].partition(":")[0].lower()
    path = path.strip("/").removesuffix(".git").strip("/")
    return f"{host}{slash}{path}" if host and path else ""
