"""Read requests of the three APIs of vendors into neutral messages. Pure.

What the agent sent stays as it is: a `WireMessage` has its row, the message that is stored of it, and its digest.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from cachetools import LRUCache

from conversations.formats.anthropic import from_anthropic
from conversations.formats.openai_chat import from_openai_chat
from conversations.formats.openai_responses import from_openai_responses
from conversations.types import NewMessage, Role
from lcmsite.gateway.surfaces_digest import Digest, digest_of

Row = Mapping[str, Any]


class Surface(StrEnum):
    """One of the APIs that agents speak."""

    MESSAGES = "messages"
    CHAT = "chat"
    RESPONSES = "responses"


class Task(StrEnum):
    """What a request of a surface wants."""

    GENERATE = "generate"
    COUNT = "count_tokens"
    COMPACT = "compact"


# The member of a request that lists its messages or items.
LIST = {Surface.MESSAGES: "messages", Surface.CHAT: "messages", Surface.RESPONSES: "input"}
_PATHS = (
    (re.compile(r"/v\d\w*/messages/count_tokens/?$"), Surface.MESSAGES, Task.COUNT),
    (re.compile(r"/v\d\w*/messages/?$"), Surface.MESSAGES, Task.GENERATE),
    (re.compile(r"/chat/completions/?$"), Surface.CHAT, Task.GENERATE),
    (re.compile(r"/responses/compact/?$"), Surface.RESPONSES, Task.COMPACT),
    (re.compile(r"/responses/?$"), Surface.RESPONSES, Task.GENERATE),
)
_READERS: Mapping[Surface, Callable[[Row], NewMessage]] = {
    Surface.MESSAGES: from_anthropic,
    Surface.CHAT: from_openai_chat,
    Surface.RESPONSES: from_openai_responses,
}
_INSTRUCTING = ("system", "developer")
_ROLES = {role.value: role for role in Role}
# Each request of a session has all messages of those before it: what was read of them is cached.
_CACHED_CHARACTERS = 8 * 1024**2
_MOST_TOKENS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def surface_of(method: str, path: str) -> tuple[Surface, Task] | None:
    """The API that a request belongs to; None for one that is only passed on."""
    if method != "POST":
        return None
    return next(((surface, task) for pattern, surface, task in _PATHS if pattern.search(path)), None)


@dataclass(frozen=True)
class WireMessage:
    """One message or item as it came, and what is stored of it."""

    # Its place in the list of the request or answer.
    place: int
    row: Row
    message: NewMessage
    digest: Digest


@dataclass(frozen=True)
class ReadRequest:
    """A request of a surface. `body` is the parsed JSON, never changed."""

    surface: Surface
    body: Row = field(repr=False)
    # Without the instructions at their head.
    messages: tuple[WireMessage, ...] = field(repr=False)
    # What the host gives the model beside the conversation: texts of system prompts, in order.
    instructions: tuple[Row, ...] = field(repr=False)
    tools: tuple[Any, ...] = field(repr=False)
    model: str
    is_streamed: bool
    # The answer that this request goes on from: then it has only the new messages.
    parent_response: str | None
    # The vendor keeps the conversation under this name: then, too, only the new messages came.
    vendor_conversation: str | None

    @property
    def is_delta(self) -> bool:
        """Whether it has only what is new, so that it can never be assembled."""
        return self.parent_response is not None or self.vendor_conversation is not None

    @property
    def most_output_tokens(self) -> int | None:
        """The longest answer that it allows, if it says."""
        given = (self.body.get(name) for name in _MOST_TOKENS)
        return next((value for value in given if type(value) is int), None)

    @property
    def rows(self) -> Sequence[Any]:
        """The list of messages or items as it came, with leading instructions."""
        return rows_of(self.surface, self.body)

    @property
    def lead(self) -> int:
        """How many rows at the head of the list are instructions."""
        return _lead(self.surface, self.rows)


def rows_of(surface: Surface, body: Row) -> Sequence[Any]:
    """The list of messages or items in a request; a plain text is one message."""
    given = body.get(LIST[surface])
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []


def objects_in(value: Any) -> Iterator[Row]:
    """The objects in a list; nothing for what is no list."""
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def read_request(surface: Surface, body: Row) -> ReadRequest:
    """Read the parsed JSON of a request."""
    rows = rows_of(surface, body)
    lead = _lead(surface, rows)
    tools = body.get("tools")
    model = body.get("model")
    return ReadRequest(
        surface=surface,
        body=body,
        messages=tuple(wire_message(surface, place, rows[place]) for place in range(lead, len(rows))),
        instructions=tuple(_instructions(surface, body, rows[:lead])),
        tools=tuple(tools) if isinstance(tools, list) else (),
        model=model if isinstance(model, str) else "",
        is_streamed=body.get("stream") is True,
        parent_response=_parent_response(body),
        vendor_conversation=_vendor_conversation(body),
    )


def wire_message(surface: Surface, place: int, row: Any) -> WireMessage:
    """Read one message or item; one that cannot be read is kept as its JSON."""
    text = json.dumps(row)
    key = surface, hashlib.blake2b(text.encode(), digest_size=16).digest()
    with _lock:
        known = _read.get(key)
    if known is None:
        known = _Read(len(text), *_read_row(surface, row))
        with _lock, suppress(ValueError):
            # One that is larger than the cache is not kept.
            _read[key] = known
    return WireMessage(place, row if isinstance(row, dict) else {"content": row}, known.message, known.digest)


class _Read(NamedTuple):
    """A row as it was read once, and the characters of its JSON."""

    characters: int
    message: NewMessage
    digest: Digest


_lock = threading.Lock()
_read: LRUCache[tuple[Surface, bytes], _Read] = LRUCache(_CACHED_CHARACTERS, getsizeof=lambda read: read.characters)


def _read_row(surface: Surface, row: Any) -> tuple[NewMessage, Digest]:
    fields: Row = row if isinstance(row, dict) else {"content": row}
    try:
        message = _READERS[surface](fields)
    except ValueError:
        role = _ROLES.get(str(fields.get("role")), Role.USER)
        message = NewMessage(role, content=json.dumps(row, ensure_ascii=False), metadata={"unread": True})
    return message, digest_of(message)


def _lead(surface: Surface, rows: Sequence[Any]) -> int:
    if surface is Surface.MESSAGES:
        return 0
    place = 0
    while place < len(rows) and isinstance(rows[place], dict) and rows[place].get("role") in _INSTRUCTING:
        place += 1
    return place


def _instructions(surface: Surface, body: Row, lead: Sequence[Row]) -> Iterator[Row]:
    given = body.get({Surface.MESSAGES: "system", Surface.RESPONSES: "instructions"}.get(surface, ""))
    if isinstance(given, str) and given:
        yield {"type": "text", "text": given}
    elif isinstance(given, list):
        yield from (block for block in given if isinstance(block, dict))
    yield from lead


def _parent_response(body: Row) -> str | None:
    given = body.get("previous_response_id")
    thread = body.get("thread")
    if isinstance(thread, dict) and thread.get("type") == "continue":
        given = thread.get("previous_message_id")
    return given if isinstance(given, str) and given else None


def _vendor_conversation(body: Row) -> str | None:
    given = body.get("conversation")
    if isinstance(given, dict):
        given = given.get("id")
    return given if isinstance(given, str) and given else None
