"""Count the files that six operations run through, in real requests."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from tests.architecture.house.sources import PROJECT, ROOMS, Count

MESSAGES = 400
OURS = tuple(f"{PROJECT / room}/" for room in ROOMS)


def hops() -> dict[str, Count]:
    """The files that each operation's second request runs through. Needs a database."""
    from compaction.engine import CompactionEngine
    from tests.factories import a_conversation

    texts = [f"message {n} about port {5400 + n % 50} and the harbour, {'word ' * 40}" for n in range(MESSAGES)]
    conversation_id = a_conversation(*texts).conversation_id
    CompactionEngine.from_settings().compact(conversation_id=conversation_id, reason="manual")
    here = f"conversations/{conversation_id}/"
    ask = _Site()
    summary_id = ask("GET", here + "lineage/")["nodes"][0]["summary_id"]
    return {
        "append": _crossed(ask, "POST", here + "messages/", {"messages": [{"role": "user", "content": "ahoy"}]}),
        "grep, newest first": _crossed(ask, "GET", here + "matches/?query=harbour&sort=recency"),
        "grep, by relevance": _crossed(ask, "GET", here + "matches/?query=harbour"),
        "assemble": _crossed(ask, "GET", here + "context/?budget=4000"),
        "assemble with a query": _crossed(ask, "GET", here + "context/?budget=4000&query=harbour"),
        "expand": _crossed(ask, "GET", f"summaries/{summary_id}/expansion/"),
    }


class _Site:
    """Calls the site's WSGI application, as the web server does."""

    def __init__(self) -> None:
        from lcmsite.wsgi import application
        from tests.lcmsite.callers import an_api_key

        self.application = application
        self.key = an_api_key()

    def __call__(self, verb: str, path: str, body: Any = None) -> Any:
        from django.test import RequestFactory

        given = {"data": json.dumps(body), "content_type": "application/json"} if body is not None else {}
        headers = {"authorization": f"Bearer {self.key}", "host": "localhost"}
        request = RequestFactory().generic(verb, f"/api/v1/{path}", headers=headers, **given)
        statuses: list[str] = []
        answer = self.application(request.environ, lambda status, headers, *_: statuses.append(status))
        content = b"".join(answer)
        if hasattr(answer, "close"):
            answer.close()
        assert statuses[0].startswith("2"), f"{verb} {path}: {statuses[0]} {content.decode()[:300]}"
        return json.loads(content)


def _crossed(ask: Callable[..., Any], *request: Any) -> Count:
    # The first request fills the caches.
    ask(*request)
    files: set[str] = set()

    def enter(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS) and frame.f_code.co_name != "<module>":
            files.add(frame.f_code.co_filename.removeprefix(f"{PROJECT}/"))

    sys.setprofile(enter)
    try:
        ask(*request)
    finally:
        sys.setprofile(None)
    return Count.each(list(files))
