"""Hash messages, to recognize them when an agent sends them again. Pure.

Agents send the same message in changing forms: a text or a list of blocks, with or without cache marks, reminders, ids
and thoughts. A digest covers only the words and calls. A *chain* hash covers all digests up to a message, except
*loose* ones: those of messages that hosts may later leave out or shorten, such as tool results and thoughts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from conversations.types import NewMessage, PartType, Role

# The beginning of a text that hosts inject into people's messages, again in each request.
_INJECTED = re.compile(r"<(system-reminder)>|<(lcm_injected) [^<>]*>|x-anthropic-billing-header:[^\n]*")
# An element at the place in a text, perhaps with the heading of Codex before it.
_ELEMENT = re.compile(r"\s*(?:# AGENTS\.md instructions[^\n]*\n+)?<([\w-]+)>")
# Names of the elements that hosts write for the user.
_OF_HOSTS = re.compile(
    r"(?:local-)?command-[\w-]+|task-notification|environment_context|user_instructions|turn_aborted"
    r"|subagent_notification|INSTRUCTIONS"
)
# What agents take away from the beginning of a command, and what they shorten to one.
_CD = re.compile(r"\A\s*cd\s+(?:\"[^\"\n$`]*\"|'[^'\n]*'|[^\s&;|\"'$`()<>]+)\s+&&\s+(?=\S)")
_ESCAPES = re.compile(r"\\+")
_DIGEST_CHARACTERS = 16
_CHAIN_CHARACTERS = 40
# The chain hash before a session's first message.
START_CHAIN = hashlib.sha256(b"lcm gateway").digest()
KEY_PREFIX = "gw:"


@dataclass(frozen=True)
class Digest:
    """A message's digest; a loose one does not change the chain hash."""

    value: bytes
    is_loose: bool

    @property
    def text(self) -> str:
        return self.value.hex()[:_DIGEST_CHARACTERS]


@dataclass(frozen=True)
class Call:
    """A call of a tool."""

    id: str
    name: str | None
    input: Any

    def repeats(self, original: Call) -> bool:
        """Whether this is the other call in a form that says nothing new.

        Agents add keys with flags and numbers to the input of a call, take `cd PROJECT &&` away from the beginning of a
        text, and change white space and escapes.
        """
        return self.is_named_like(original) and _repeats(self.input, original.input)

    def is_named_like(self, original: Call) -> bool:
        """Whether both have the same id, which is unique, and the same name."""
        return (self.id, self.name) == (original.id, original.name)


@dataclass(frozen=True)
class Link:
    """The chain hash at a message, and the message's idempotency key."""

    chain: bytes
    key: str


def without_injected(text: str) -> str:
    """Return the text without what hosts or LCM injected into it."""
    kept, at, place = [], 0, 0
    unclosed = set()
    while beginning := _INJECTED.search(text, place):
        place = beginning.end()
        if name := beginning[1] or beginning[2]:
            closing = f"</{name}>"
            end = -1 if name in unclosed else text.find(closing, place)
            if end < 0:
                # Then no later one is closed either, and the text is searched for it only once.
                unclosed.add(name)
                continue
            place = end + len(closing)
        kept.append(text[at : beginning.start()])
        at = place
    return "".join([*kept, text[at:]]).strip()


def is_only_elements(text: str) -> bool:
    """Whether a text is a row of closed elements that hosts write for the user."""
    place = 0
    while (beginning := _ELEMENT.match(text, place)) and _OF_HOSTS.fullmatch(beginning[1]):
        closing = f"</{beginning[1]}>"
        end = text.find(closing, beginning.end())
        if end < 0:
            return False
        place = end + len(closing)
    return place > 0 and not text[place:].strip()


def digest_of(message: NewMessage) -> Digest:
    """Return the digest of a message."""
    text = "\n".join(filter(None, map(without_injected, _texts(message))))
    calls = [_call_values(part) for part in message.parts if _is_call(part)]
    files = [_sha(part.file_url or part.file_name or "") for part in message.parts if part.part_type is PartType.FILE]
    author = "other"
    if message.role is Role.ASSISTANT:
        # Clients trim answers, and join or split their blocks: white space does not count.
        author, text = "assistant", "".join(text.split())
    if message.role is not Role.SYSTEM and (text or calls or files):
        # Hosts drop old images, so files count only in a message that has nothing else.
        return Digest(_hash([author, text, calls, [] if text or calls else files]), is_loose=False)
    return Digest(_hash([message.role.value, text, *_loose_values(message)]), is_loose=True)


def links_of(digests: Iterable[Digest], *, after: bytes = START_CHAIN) -> Iterator[Link]:
    """Yield the link of each message, beginning after the chain hash `after`."""
    chain = after
    repeats: dict[bytes, int] = {}
    for digest in digests:
        if digest.is_loose:
            number = repeats[digest.value] = repeats.get(digest.value, 0) + 1
            mark = "~" if number == 1 else f"~{number}~"
            yield Link(chain, f"{KEY_PREFIX}{_chain_text(chain)}:{mark}{digest.text}")
        else:
            chain = hashlib.sha256(chain + digest.value).digest()
            repeats.clear()
            yield Link(chain, f"{KEY_PREFIX}{_chain_text(chain)}:{digest.text}")


def incomplete_key(chain: bytes, exchange: str) -> str:
    """Return the idempotency key of an incomplete answer after this chain hash."""
    return f"{KEY_PREFIX}{_chain_text(chain)}:broken-{exchange}"


def digest_in(key: str | None) -> str:
    """Return the digest in an idempotency key of the gateway; "" for other keys."""
    if key is None or not key.startswith(KEY_PREFIX):
        return ""
    return key.rpartition(":")[2].rpartition("~")[2]


def _chain_text(chain: bytes) -> str:
    return chain.hex()[:_CHAIN_CHARACTERS]


def _texts(message: NewMessage) -> Iterator[str]:
    if not message.parts:
        yield message.content or ""
    for part in message.parts:
        if part.part_type in (PartType.TEXT, PartType.COMPACTION):
            yield part.text_content or ""


def calls_in(message: Any) -> list[Call]:
    """Return the calls of a message, if each has an id."""
    calls = [Call(part.tool_call_id, *_call_values(part)) for part in _parts_of(message) if _is_call(part)]
    return calls if all(call.id for call in calls) else []


def words_in(message: Any) -> str:
    """Return the text of a message's parts without white space."""
    texts = [part.text_content or "" for part in _parts_of(message) if part.part_type == PartType.TEXT]
    return "".join("".join(texts).split())


def _repeats(value: Any, original: Any) -> bool:
    """Whether a value in a call's input is the original one, perhaps rewritten."""
    if isinstance(value, dict) and isinstance(original, dict):
        added = (value[key] for key in value.keys() - original.keys())
        is_kept = original.keys() <= value.keys() and not any(isinstance(each, str | dict | list) for each in added)
        return is_kept and all(_repeats(value[key], each) for key, each in original.items())
    if isinstance(value, list) and isinstance(original, list):
        return len(value) == len(original) and all(map(_repeats, value, original))
    if isinstance(value, str) and isinstance(original, str):
        return _bare(value) in (_bare(original), _bare(_CD.sub("", original)))
    return type(value) is type(original) and value == original


def _bare(text: str) -> str:
    """Return a text with single blanks and single escapes."""
    return _ESCAPES.sub(r"\\", " ".join(text.split()))


def _parts_of(message: Any) -> Iterable[Any]:
    """Return the parts of a new message or of a stored one."""
    return message.parts if isinstance(message, NewMessage) else message.parts.all()


def _is_call(part: Any) -> bool:
    return part.part_type == PartType.TOOL and (part.tool_output is None and part.tool_error is None)


def _call_values(part: Any) -> list[Any]:
    value = part.tool_input
    if isinstance(value, str):
        with suppress(ValueError, RecursionError):
            value = json.loads(value)
    return [part.tool_name, value]


def _loose_values(message: NewMessage) -> Iterator[Any]:
    """Yield what distinguishes loose messages: results, thoughts, metadata."""
    for part in message.parts:
        if part.part_type is PartType.TOOL:
            yield [part.tool_call_id, part.tool_output, part.tool_error]
        elif part.part_type is PartType.REASONING:
            yield part.text_content or _encrypted_content(message)
    if not message.parts and not message.content:
        yield dict(message.metadata)


def _encrypted_content(message: NewMessage) -> Any:
    for note in message.metadata.values():
        if isinstance(note, dict) and isinstance(note.get("add"), dict) and "encrypted_content" in note["add"]:
            return note["add"]["encrypted_content"]
    return None


def _sha(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _hash(value: Any) -> bytes:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).digest()
