"""Agents that send their whole history each time, in the three APIs, and what LCM has of it."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from conversations.models import Conversation
from conversations.scope import Scope
from lcmsite.gateway.lookups.calls_of_answers import calls_in, result_rows
from lcmsite.gateway.recording.exchange import Exchange, Outcome
from lcmsite.gateway.recording.recorder import Recorded, Recorder
from lcmsite.gateway.surfaces import LIST_KEY, Surface, Task
from lcmsite.gateway.surfaces_answer import AnswerReader, ReadAnswer
from lcmsite.models import ApiKey
from tests.clients.answers import RENDERINGS, Answer, Rendering

TOOL = {"name": "ls", "input_schema": {"type": "object"}}
PATHS = {
    Surface.MESSAGES: "/v1/messages?beta=true",
    Surface.CHAT: "/v1/chat/completions",
    Surface.RESPONSES: "/v1/responses",
}
CLAUDE = "x-claude-code-session-id"
SESSION = "0b3f2c1d-aaaa-bbbb-cccc-0123456789ab"


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def results(surface: Surface, rows: list[Any], *texts: str) -> list[dict[str, Any]]:
    """Results of the calls in the rows of an answer, as an agent sends them."""
    return result_rows(surface, list(zip(calls_in(surface, rows), texts, strict=True)))


def body_of(surface: Surface, rows: list[Any], **more: Any) -> dict[str, Any]:
    return {"model": "fake", "max_tokens": 1000, "tools": [TOOL], LIST_KEY[surface]: rows, **more}


def an_exchange(surface: Surface, body: Any, *, key_hash: bytes = b"k", headers: Any = None) -> Exchange:
    """A request for an answer, as it is recorded."""
    data = json.dumps(body).encode()
    return Exchange(str(uuid.uuid4()), datetime.now(UTC), key_hash, surface, Task.GENERATE, headers or {}, data)


def rendered(surface: Surface, answer: Answer | str) -> Rendering:
    """An answer as its vendor writes it, whole and as events."""
    return RENDERINGS[surface](answer if isinstance(answer, Answer) else Answer(answer), "fake", 400)


def read_answer(surface: Surface, answer: Answer, *, cut: bool = False) -> ReadAnswer:
    rendering = rendered(surface, answer)
    reader = AnswerReader(surface, is_stream=cut)
    if not cut:
        reader.feed(json.dumps(rendering.whole()).encode())
        return reader.finish()
    events = [each for each in rendering.stream() if b"[DONE]" not in each]
    reader.feed(b"".join(events[: len(events) // 2]))
    return reader.finish()


@dataclass
class Agent:
    """One session through the recorder, without HTTP."""

    recorder: Recorder
    surface: Surface
    headers: dict[str, str] = field(default_factory=lambda: {CLAUDE: SESSION})
    rows: list[Any] = field(default_factory=list)

    def ask(
        self, *rows: Any, answer: Answer | None = None, cut: bool = False, keep: bool = True, **more: Any
    ) -> Recorded:
        """Send the history with these rows, and take the answer into it."""
        exchange, recorded = self.send(*rows, **more)
        read = self.get(exchange, recorded, answer, cut=cut)
        if keep:
            self.rows = [*self.rows, *rows, *(read.rows if read else ())]
        return recorded

    def send(self, *rows: Any, **more: Any) -> tuple[Exchange, Recorded]:
        """Send the history with these rows; the answer is still to come."""
        exchange = self.exchange(*rows, **more)
        return exchange, self.recorder.record_request(exchange)

    def exchange(self, *rows: Any, **more: Any) -> Exchange:
        return an_exchange(self.surface, body_of(self.surface, [*self.rows, *rows], **more), headers=self.headers)

    def get(
        self, exchange: Exchange, recorded: Recorded, answer: Answer | None, *, cut: bool = False
    ) -> ReadAnswer | None:
        """Have an answer recorded."""
        read = None if answer is None else read_answer(self.surface, answer, cut=cut)
        outcome = Outcome(200 if read else 529, 5, "" if read else "overloaded", read)
        self.recorder.record_answer(exchange, recorded, outcome)
        return read


def an_agent(workspace: Any, surface: Surface, **more: Any) -> Agent:
    return Agent(Recorder.from_settings(Scope(workspace.pk)), surface, **more)


def conversation(name: str = f"gateway/{SESSION}") -> Conversation:
    return Conversation.objects.get(session_id=name)


def mine(gateway: Any) -> Conversation | None:
    """The first conversation of the workspace of a gateway's key."""
    workspace = ApiKey.objects.get(prefix=gateway.key[:12]).workspace
    return Conversation.objects.filter(workspace=workspace).order_by("conversation_id").first()


def words(found: Conversation, *, active: bool = True) -> list[str]:
    """What is stored, in order: all of it, or what is on the active path."""
    rows = found.messages.order_by("seq").values_list("seq", "content")
    return [content.strip() for seq, content in rows if not active or found.is_active(seq)]
