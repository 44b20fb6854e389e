"""Parse requests of the three vendor APIs into vendor-neutral messages. Pure.

A *surface* is one of these APIs: Messages (Anthropic), Chat Completions and Responses (OpenAI). A *row* is one message
or item of a request or answer: its JSON object, unchanged.
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from cachetools import LRUCache, cached

from conversations.formats.anthropic import from_anthropic
from conversations.formats.openai_chat import from_openai_chat
from conversations.formats.openai_responses import from_openai_responses
from conversations.types import NewMessage, Role
from lcmsite.gateway.surfaces_digest import Digest, digest_of

Row = Mapping[str, Any]


class Surface(StrEnum):
    """A vendor API that agents use."""

    MESSAGES = "messages"
    CHAT = "chat"
    RESPONSES = "responses"


class Task(StrEnum):
    """What a request wants from the vendor."""

    GENERATE = "generate"
    COUNT = "count_tokens"
    COMPACT = "compact"
    # An answer that the vendor made in the background.
    RETRIEVE = "retrieve"


# The member of a request that lists its messages or items.
LIST_KEY = {Surface.MESSAGES: "messages", Surface.CHAT: "messages", Surface.RESPONSES: "input"}
_PATHS = (
    (re.compile(r"/v\d\w*/messages/count_tokens/?$"), Surface.MESSAGES, Task.COUNT),
    (re.compile(r"/v\d\w*/messages/?$"), Surface.MESSAGES, Task.GENERATE),
    (re.compile(r"/chat/completions/?$"), Surface.CHAT, Task.GENERATE),
    (re.compile(r"/responses/compact/?$"), Surface.RESPONSES, Task.COMPACT),
    (re.compile(r"/responses/?$"), Surface.RESPONSES, Task.GENERATE),
)
_RETRIEVED = re.compile(r"/responses/(?!compact/?$)([^/]+)/?$")
_READERS: Mapping[Surface, Callable[[Row], NewMessage]] = {
    Surface.MESSAGES: from_anthropic,
    Surface.CHAT: from_openai_chat,
    Surface.RESPONSES: from_openai_responses,
}
_INSTRUCTION_ROLES = ("system", "developer")
_ROLES = {role.value: role for role in Role}
# Each request repeats the earlier messages of its session, so parsed rows are cached.
_CACHED_CHARACTERS = 8 * 1024**2
_TOKEN_LIMIT_KEYS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


def surface_of(method: str, path: str) -> tuple[Surface, Task] | None:
    """Return a request's API and task; None for a request that is only passed on."""
    if method == "GET" and _RETRIEVED.search(path):
        return Surface.RESPONSES, Task.RETRIEVE
    if method != "POST":
        return None
    return next(((surface, task) for pattern, surface, task in _PATHS if pattern.search(path)), None)


def retrieving_body(path: str) -> bytes:
    """Return the body under which the retrieval of an answer is recorded."""
    found = _RETRIEVED.search(path)
    return json.dumps({"previous_response_id": found[1] if found else ""}).encode()


@dataclass(frozen=True)
class WireMessage:
    """One message or item: its row, the message to store, and its digest."""

    # Its index in the list of the request or answer.
    index: int
    row: Row
    message: NewMessage
    digest: Digest


@dataclass(frozen=True)
class ReadRequest:
    """A parsed request. `body` is its JSON, never changed."""

    body: Row = field(repr=False)
    # Without leading system and developer rows, which are in `instructions`.
    messages: tuple[WireMessage, ...] = field(repr=False)
    # System prompts, as blocks or rows, in order.
    instructions: tuple[Row, ...] = field(repr=False)
    tools: tuple[Any, ...] = field(repr=False)
    model: str
    # The id of the answer that this request continues; it then has only the new messages.
    parent_response: str | None
    # The id under which the vendor stores the conversation; the request then has only the new messages.
    vendor_conversation: str | None

    @property
    def is_delta(self) -> bool:
        """Whether the request has only new messages; it is then never shortened."""
        return self.parent_response is not None or self.vendor_conversation is not None


def most_output_tokens(body: Row) -> int | None:
    """Return the maximum number of tokens of the answer, if a request sets a limit."""
    given = (body.get(name) for name in _TOKEN_LIMIT_KEYS)
    return next((value for value in given if type(value) is int), None)


def _rows_of(surface: Surface, body: Row) -> Sequence[Any]:
    """Return a request's messages or items; a plain string is one user message."""
    given = body.get(LIST_KEY[surface])
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    return given if isinstance(given, list) else []


def objects_in(value: Any) -> Iterator[Row]:
    """Yield the JSON objects in a list; nothing if the value is not a list."""
    if isinstance(value, list):
        yield from (each for each in value if isinstance(each, dict))


def read_request(surface: Surface, body: Row) -> ReadRequest:
    """Convert a request's JSON body to messages, instructions and metadata."""
    rows = _rows_of(surface, body)
    instruction_count = _count_instructions(surface, rows)
    tools = body.get("tools")
    model = body.get("model")
    return ReadRequest(
        body=body,
        messages=tuple(wire_message(surface, index, rows[index]) for index in range(instruction_count, len(rows))),
        instructions=tuple(_instructions(surface, body, rows[:instruction_count])),
        tools=tuple(tools) if isinstance(tools, list) else (),
        model=model if isinstance(model, str) else "",
        parent_response=_parent_response(body),
        vendor_conversation=_vendor_conversation(body),
    )


def wire_message(surface: Surface, index: int, row: Any) -> WireMessage:
    """Convert one message or item; one that cannot be read becomes JSON text."""
    converted: _Converted = _convert_row(surface, row, json.dumps(row))
    return WireMessage(index, _fields_of(row), converted.message, converted.digest)


class _Converted(NamedTuple):
    """A row's conversion, and the length of its JSON."""

    characters: int
    message: NewMessage
    digest: Digest


@cached(
    LRUCache(_CACHED_CHARACTERS, getsizeof=lambda converted: converted.characters),
    key=lambda surface, row, text: (surface, hashlib.blake2b(text.encode(), digest_size=16).digest()),
    lock=threading.Lock(),
)
def _convert_row(surface: Surface, row: Any, text: str) -> _Converted:
    fields = _fields_of(row)
    try:
        message = _READERS[surface](fields)
    except ValueError:
        role = _ROLES.get(str(fields.get("role")), Role.USER)
        message = NewMessage(role, content=json.dumps(row, ensure_ascii=False), metadata={"unread": True})
    return _Converted(len(text), message, digest_of(message))


def _fields_of(row: Any) -> Row:
    return row if isinstance(row, dict) else {"content": row}


def _count_instructions(surface: Surface, rows: Sequence[Any]) -> int:
    if surface is Surface.MESSAGES:
        return 0
    index = 0
    while index < len(rows) and isinstance(rows[index], dict) and rows[index].get("role") in _INSTRUCTION_ROLES:
        index += 1
    return index


def _instructions(surface: Surface, body: Row, leading: Sequence[Row]) -> Iterator[Row]:
    given = body.get({Surface.MESSAGES: "system", Surface.RESPONSES: "instructions"}.get(surface, ""))
    if isinstance(given, str) and given:
        yield {"type": "text", "text": given}
    yield from objects_in(given)
    yield from leading


def _parent_response(body: Row) -> str | None:
    given = body.get("previous_response_id")
    thread = body.get("thread")
    if isinstance(thread, dict) and thread.get("type") == "continue":
        given = thread.get("previous_message_id")
    return given if isinstance(given, str) and given and given.isprintable() else None


def _vendor_conversation(body: Row) -> str | None:
    given = body.get("conversation")
    if isinstance(given, dict):
        given = given.get("id")
    return given if isinstance(given, str) and given else None
