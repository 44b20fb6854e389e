"""A polite client's appends, timed, alone and beside a crowd of expensive requests by another key."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from tests.lcmsite.sites import Site

PATTERN = r"(\w+\s?)*\1$"


@dataclass
class Timed:
    """What came of requests of one client: statuses, and how long each took, in seconds."""

    statuses: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)

    def took(self, share: float) -> float:
        """The time that this share of the requests did not exceed."""
        return sorted(self.seconds)[min(len(self.seconds) - 1, int(share * len(self.seconds)))]


def asked(site: Site, method: str, path: str, body: dict[str, Any] | None = None) -> tuple[int, dict[str, str]]:
    """The status and the headers, by lower-case names, of the answer, which is read to its end."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{site.port}/api/v1/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {site.key}", "Content-Type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            response.read()
            return response.status, {name.lower(): value for name, value in response.headers.items()}
    except urllib.error.HTTPError as refusal:
        refusal.read()
        return refusal.code, {name.lower(): value for name, value in refusal.headers.items()}


def timed_appends(site: Site, conversation_id: int, *, count: int) -> Timed:
    found = Timed()
    for number in range(count):
        began = time.perf_counter()
        status, _ = asked(
            site,
            "POST",
            f"conversations/{conversation_id}/messages/",
            {"messages": [{"role": "user", "content": f"message {number}"}]},
        )
        found.seconds.append(time.perf_counter() - began)
        found.statuses[status] += 1
    return found


def a_long_conversation(site: Site, *, messages: int) -> int:
    """One whose search, expansion and check take long: words that are common, and texts that patterns get lost in."""
    words = random.Random(1)
    known = ["".join(words.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(500)]
    conversation_id: int = site.post("conversations/", {"session_id": "long"})["conversation_id"]
    for _ in range(0, messages, 100):
        batch = [
            {"role": role, "content": " ".join(words.choices(known, k=200))} for role in ("user", "assistant") * 50
        ]
        site.post(f"conversations/{conversation_id}/messages/", {"messages": batch})
    return conversation_id


def slow_search(conversation_id: int) -> str:
    """The path of a search for a pattern that takes long."""
    return f"conversations/{conversation_id}/matches/?{urlencode({'query': PATTERN, 'mode': 'regex'})}"


@dataclass
class Crowd:
    """Clients with one key, each of which repeats an expensive request as soon as it is answered."""

    site: Site
    path: str
    clients: int
    statuses: Counter[int] = field(default_factory=Counter)
    refusals_without_retry_after: int = 0
    _over: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Crowd:
        self._threads = [threading.Thread(target=self._ask) for _ in range(self.clients)]
        for each in self._threads:
            each.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        for each in self._threads:
            each.join()

    def _ask(self) -> None:
        while not self._over.is_set():
            status, headers = asked(self.site, "GET", self.path)
            self.statuses[status] += 1
            if status == 429:
                self.refusals_without_retry_after += "retry-after" not in headers
                self._over.wait(1)
