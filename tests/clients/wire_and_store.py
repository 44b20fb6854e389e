"""Compare what went over a wire with what LCM has of it: every message once, in order, on its branch.

Both sides become chains: a message is known by its own words and those of all before it on its path. Reminders of
hosts, white space, cache marks and thoughts do not count here; `missing_words` looks for the words themselves.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conversations.content.large_texts.moving import restore_texts
from conversations.files.large_files import LargeFileService
from conversations.formats.anthropic import to_anthropic
from conversations.formats.openai_chat import to_openai_chat
from conversations.formats.openai_responses import to_openai_responses
from conversations.models import Conversation
from conversations.store.paths import branches_of
from conversations.store.read import messages_after
from conversations.types import MessageRecord
from lcmsite.gateway.surfaces import Surface
from tests.clients.answers import RENDERINGS, Answer, Refusal
from tests.clients.forty_turns import rows_of
from tests.clients.vendor import Request

START = b""
_REMINDERS = re.compile(r"<system-reminder>.*?</system-reminder>|x-anthropic-billing-header:[^\n]*", re.DOTALL)
_WRITTEN = {Surface.MESSAGES: to_anthropic, Surface.CHAT: to_openai_chat, Surface.RESPONSES: to_openai_responses}
_MOST = 100_000

Row = Mapping[str, Any]
# Answers that were cut off: what they follow, and their words.
Broken = Sequence[tuple[bytes, str]]


@dataclass(frozen=True)
class Known:
    """A message on a path, for people to read."""

    chain: bytes
    said: tuple[Any, ...]
    # Where it is stored.
    conversation: int = 0

    def __str__(self) -> str:
        return json.dumps(self.said, ensure_ascii=False)[:300]


@dataclass
class Kept:
    """What LCM has: messages, and all texts."""

    messages: list[Known] = field(default_factory=list)
    broken: list[tuple[bytes, str]] = field(default_factory=list)
    words: set[str] = field(default_factory=set)


def said_of(row: Row) -> tuple[Any, ...]:
    """The words and calls of a message or an item; empty if it has none of its own."""
    said: list[Any] = []
    texts: list[str] = []
    kind = str(row.get("type", ""))
    if kind.endswith("_call"):
        said.append(("call", row.get("call_id"), row.get("name"), _value(row.get("arguments", row.get("input")))))
    elif kind.endswith("_output"):
        said.append(("result", row.get("call_id"), _words(row.get("output"))))
    elif row.get("role") == "tool":
        said.append(("result", row.get("tool_call_id"), _words(row.get("content"))))
    elif kind != "reasoning":
        for block in _blocks(row.get("content")):
            match block.get("type"):
                case "tool_use":
                    said.append(("call", block["id"], block["name"], _value(block["input"])))
                case "tool_result":
                    said.append(("result", block["tool_use_id"], _words(block.get("content"))))
                case "thinking" | "redacted_thinking":
                    pass
                case _:
                    texts.append(_words([block]))
        for call in row.get("tool_calls") or ():
            function = call["function"]
            said.append(("call", call["id"], function["name"], _value(function["arguments"])))
    text = "".join(texts)
    return (row.get("role") or kind, text, *said) if text or said else ()


def chains_of(rows: Iterable[Row], *, after: bytes = START, broken: Broken = ()) -> Iterator[Known]:
    """The messages of a history that say something, in order."""
    chain = after
    for said in filter(None, map(said_of, rows)):
        chain = link(chain, _as_kept(said, chain, broken))
        yield Known(chain, said)


def _as_kept(said: tuple[Any, ...], before: bytes, broken: Broken) -> tuple[Any, ...]:
    """An agent may keep less of an answer that was cut off than LCM does."""
    if said[0] == "assistant" and len(said) == 2:
        for chain, text in broken:
            if chain == before and text.startswith(said[1]):
                return ("assistant", text)
    return said


def link(chain: bytes, said: tuple[Any, ...]) -> bytes:
    return hashlib.sha256(chain + json.dumps(said, sort_keys=True).encode()).digest()


def expected(
    surface: Surface, answered: Sequence[tuple[Request, Answer | Refusal]], *, broken: Broken = ()
) -> dict[bytes, Known]:
    """All messages of these exchanges; an answer that was broken off is none."""
    found: dict[bytes, Known] = {}
    for request, answer in answered:
        history = list(chains_of(_without_lead(surface, rows_of(request.json)), broken=broken))
        found |= {each.chain: each for each in history}
        if isinstance(answer, Answer) and is_whole(answer):
            last = history[-1].chain if history else START
            found |= {each.chain: each for each in chains_of(answer_rows(surface, answer), after=last)}
    return found


def is_whole(answer: Answer) -> bool:
    """Whether nobody was to break it off."""
    return answer.cut_after is None and not answer.pause


def answer_rows(surface: Surface, answer: Answer) -> list[Row]:
    """An answer as its vendor writes it; its calls must have ids."""
    whole = RENDERINGS[surface](answer, "m", 9).whole()
    match surface:
        case Surface.MESSAGES:
            return [whole]
        case Surface.CHAT:
            return [whole["choices"][0]["message"]]
        case Surface.RESPONSES:
            return list(whole["output"])


def kept_in(workspace_id: int, surface: Surface) -> Kept:
    """What is stored of all sessions in a workspace."""
    kept = Kept()
    files = LargeFileService.from_settings()
    for conversation in Conversation.objects.filter(workspace_id=workspace_id).order_by("pk"):
        follows = {branch.first_seq: branch.follows_seq for branch in branches_of(conversation)}
        chains: dict[int, bytes] = {0: START}
        for stored in messages_after(conversation.pk, workspace_id=workspace_id, after_seq=0, limit=_MOST):
            message = restore_texts(stored, files=files)
            before = chains[follows.get(message.seq, message.seq - 1)]
            row = _WRITTEN[surface](message)
            kept.words.update(strings_in(row))
            said = said_of(row)
            chain = chains[message.seq] = link(before, said) if said else before
            if _is_broken(message):
                kept.broken.append((before, said[1] if said else ""))
                chains[message.seq] = chain
            elif said:
                kept.messages.append(Known(chain, said, conversation.pk))
        kept.words.update(
            each
            for entry in conversation.journal_entries.all()
            for each in strings_in(json.loads(entry.entry or "null"))
        )
    return kept


def differences(wanted: Mapping[bytes, Known], kept: Kept, answers: Sequence[Sequence[Row]] = ()) -> list[str]:
    """What is missing, there twice, or there though nobody said it; nothing if all is as it was said.

    One of the `answers` may be there behind any message.
    """
    counts = Counter(each.chain for each in kept.messages)
    by_chain = {each.chain: each for each in kept.messages}
    possible = {each.chain for before in wanted for rows in answers for each in chains_of(rows, after=before)}
    broken = {link(before, ("assistant", text)) for before, text in kept.broken}
    missing = [f"missing: {each}" for chain, each in wanted.items() if not counts[chain] and chain not in broken]
    # Sessions may begin alike.
    places = Counter((each.conversation, each.chain) for each in kept.messages)
    twice = [f"{count} times: {by_chain[chain]}" for (_, chain), count in places.items() if count > 1]
    added = [f"added: {each}" for chain, each in by_chain.items() if chain not in wanted and chain not in possible]
    # One that is missing takes those behind it along: the first say what is wrong.
    return [*missing[:3], *twice[:3], *added[:3], *([f"{len(missing)} and {len(added)}"] if missing or added else [])]


def missing_words(requests: Iterable[Request], kept: Kept) -> list[str]:
    """Texts of requests, to the letter, that LCM has neither in a message nor in the journal."""
    sent = {text for request in requests for row in rows_of(request.json) for text in strings_in(row)}
    # Agents write the input of a call anew: it is the same JSON, with other blanks.
    inputs = {_same_input(text) for text in kept.words if text.startswith("{")}
    missing = (text for text in sent - kept.words if text.strip() and _same_input(text) not in inputs)
    # Of an answer that was broken off, LCM may have more than the agent.
    begun = tuple(words for _, words in kept.broken)
    return sorted(text[:300] for text in missing if not any(each.startswith("".join(text.split())) for each in begun))


def _same_input(text: str) -> str:
    value = _value(text)
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else text


def strings_in(value: Any) -> Iterator[str]:
    """All texts in a value of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from strings_in(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from strings_in(each)


def _is_broken(message: MessageRecord) -> bool:
    facts = message.metadata.get("gateway")
    return isinstance(facts, dict) and bool(facts.get("interrupted"))


def _without_lead(surface: Surface, rows: Sequence[Row]) -> Sequence[Row]:
    """Without the instructions at the head, which belong to the journal."""
    place = 0
    while surface is not Surface.MESSAGES and place < len(rows) and rows[place].get("role") in ("system", "developer"):
        place += 1
    return rows[place:]


def _blocks(content: Any) -> list[Row]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [each for each in content or [] if isinstance(each, dict)]


def _words(content: Any) -> str:
    """The texts of a content without reminders and white space."""
    texts = (str(block.get("text", "")) for block in _blocks(content))
    return "".join("".join(_REMINDERS.sub("", text) for text in texts).split())


def _value(arguments: Any) -> Any:
    """The input of a call, whether it came as JSON or as its text."""
    if isinstance(arguments, str):
        try:
            return json.loads(arguments)
        except ValueError:
            return arguments
    return arguments
