"""A client of LCM's REST API for hooks; needs only the standard library."""

from __future__ import annotations

import json
import time
from contextlib import closing
from typing import Any
from urllib.parse import quote, urlsplit

# Timeout of all requests of one hook together: the host waits for the hook.
TIMEOUT_SECONDS = 2.0
# The same after a compaction, which takes longer itself.
COMPACTED_SECONDS = 6.0
# The same for a background process.
BACKGROUND_TIMEOUT_SECONDS = 10.0
# No summary fits into fewer tokens.
_LEAST_TOKENS = 200


class Unreachable(Exception):
    """LCM could not be reached, or gave an unexpected response."""


class RestClient:
    """Sends requests with one key; `timeout` limits their total time."""

    def __init__(self, url: str, key: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self._url = url
        self._key = key
        self._deadline = time.monotonic() + timeout

    def get(self, path: str, **query: Any) -> dict[str, Any] | None:
        """GET a path; returns its JSON object, None for 404. Raises Unreachable."""
        pairs = [f"{name}={quote(str(value), safe='')}" for name, value in query.items()]
        status, body = self._request(f"/api/v1/{path}" + ("?" + "&".join(pairs) if pairs else ""))
        if status == 404:
            return None
        if status != 200:
            raise Unreachable(f"{path.split('/')[0]}: status {status}")
        try:
            found = json.loads(body)
        except ValueError as wrong:
            raise Unreachable(f"no JSON: {wrong}") from wrong
        return found if isinstance(found, dict) else None

    def is_ready(self) -> bool:
        """Whether LCM and its database are ready."""
        try:
            return self._request("/readyz")[0] == 200
        except Unreachable:
            return False

    def refuses_key(self) -> bool:
        """Whether LCM answers, but refuses this key."""
        try:
            return self._request("/api/v1/conversations/?limit=1")[0] in (401, 403)
        except Unreachable:
            return False

    def _request(self, path: str) -> tuple[int, bytes]:
        # Imported here: events that send no request need not wait for it.
        import http.client

        left = self._deadline - time.monotonic()
        if left <= 0:
            raise Unreachable("no time is left")
        headers = {"Authorization": f"Bearer {self._key}"}
        try:
            parts = urlsplit(self._url)
            kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
            with closing(kind(parts.hostname or "127.0.0.1", parts.port, timeout=left)) as connection:
                connection.request("GET", parts.path.rstrip("/") + path, headers=headers)
                answer = connection.getresponse()
                return answer.status, answer.read()
        except (OSError, ValueError, http.client.HTTPException) as refusal:
            raise Unreachable(str(refusal)) from refusal


def recalled(lcm: RestClient, *, session: str, project: str, tokens: int, characters: int) -> str:
    """Return LCM's recall of a session or project, marked so it is not stored again.

    Returns "" if there is none within the limits. Raises Unreachable.
    """
    conversation = lcm.get("conversations/find/", session_id=session) if session else None
    path = "recall/" if conversation is None else f"conversations/{conversation['conversation_id']}/recall/"
    query = {"project": project} if conversation is None or conversation.get("project") is None else {}
    if conversation is None and not project:
        return ""
    while tokens >= _LEAST_TOKENS:
        found = lcm.get(path, budget=tokens, share=1, marked="true", **query)
        if found is None and conversation is not None and query:
            # There is no project of this name yet.
            query = {}
            continue
        text = str(found["text"]) if found else ""
        if len(text) <= characters:
            return text
        # The text is enclosed in a mark, so it cannot be cut: request fewer tokens.
        tokens = min(tokens - 100, tokens * characters // len(text) * 9 // 10)
    return ""
