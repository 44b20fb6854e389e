"""A vendor that labels items by a fixed rule, and does it badly on demand."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from collections import Counter
from typing import Any

from conversations.store.conversations import ConversationStore
from retrieval.map.map_operator import MapOperator
from retrieval.map.types import MapRunRecord
from tests.compaction.vendor import Asked, Behaviour, failing, hangs
from tests.factories import a_conversation

LABELS = ("billing", "bug", "praise", "question")
SCHEMA = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "label": {"enum": list(LABELS)}},
    "required": ["id", "label"],
    "additionalProperties": False,
}
PROMPT = "Label this line.\n<item>{{item}}</item>"


def label_of(text: str) -> str:
    return LABELS[hashlib.sha256(text.encode()).digest()[0] % len(LABELS)]


def an_item(number: int) -> dict[str, Any]:
    return {"id": number, "text": f"line {number} of the list"}


def expected(number: int) -> dict[str, Any]:
    return {"id": number, "label": label_of(an_item(number)["text"])}


def item_in(asked: Asked) -> dict[str, Any]:
    return json.loads(re.search(r"<item>(.*?)</item>", asked.user, re.DOTALL)[1])


def labelling(asked: Asked) -> None:
    """The right label."""
    item = item_in(asked)
    answering(json.dumps({"id": item["id"], "label": label_of(item["text"])}))(asked)


def answering(text: str) -> Behaviour:
    def behave(asked: Asked) -> None:
        asked.send(200, asked.answer(text))

    return behave


class Unreliable:
    """Fails one call in four, in turn: a fault, outside the schema, no JSON; some hang."""

    def __init__(self, *, hang_every: int = 0) -> None:
        self.calls = Counter[int]()
        self._count = 0
        self._lock = threading.Lock()
        self._hang_every = hang_every

    def __call__(self, asked: Asked) -> None:
        with self._lock:
            self._count += 1
            count = self._count
            self.calls[item_in(asked)["id"]] += 1
        if self._hang_every and count % self._hang_every == 0:
            hangs(asked)
        elif count % 4 == 0:
            bad = (failing(503), answering('{"id": "seven"}'), answering("It is a bug."))
            bad[count // 4 % len(bad)](asked)
        else:
            labelling(asked)


def a_run(operator: MapOperator, count: int, *, conversation_id: int | None = None, **options: Any) -> MapRunRecord:
    """A run over so many lines."""
    conversation_id = conversation_id or a_conversation("hello").conversation_id
    given = {"prompt": PROMPT, "output_schema": SCHEMA, "items": [an_item(number) for number in range(count)]}
    return operator.submit(**{**given, "conversation_id": conversation_id, "timeout_s": 2, **options})


def last_message(conversation_id: int) -> str:
    return ConversationStore.from_settings().list_messages(conversation_id=conversation_id)[-1].content
