"""Keep sessions of the Claude Agent SDK in LCM.

    options = ClaudeAgentOptions(session_store=LcmSessionStore())

Each session is a conversation. Every entry is stored unchanged in its journal and comes back deep-equal; entries that
are messages are stored as messages, too, which LCM searches, summarizes and recalls. A subagent's transcript is a
conversation of its own, with the session's as its parent. The project is the SDK's `project_key`.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import ProxyHandler, Request, build_opener
from weakref import WeakValueDictionary

import anyio
import anyio.to_thread
from claude_agent_sdk import (
    SessionKey,
    SessionListSubkeysKey,
    SessionStore,
    SessionStoreEntry,
    SessionStoreListEntry,
    SessionSummaryEntry,
    fold_session_summary,
)

logger = logging.getLogger("lcm.session_store")

MOST_ENTRIES = 500
MOST_BYTES = 8 * 1024 * 1024
# The metadata key and name prefix of this store's conversations.
OWN = "claude_agent_sdk"
PREFIX = "claude-agent-sdk"
# LCM's metadata cannot hold these characters.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
Json = dict[str, Any]


class LcmRefusal(Exception):
    """LCM's response has an error status."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"LCM answered {status} ({code}): {detail}")
        self.status = status
        self.code = code


@dataclass(frozen=True)
class _Rest:
    """A client of LCM's REST API; each request opens a connection."""

    url: str
    token: str
    timeout: float

    def send(self, verb: str, path: str, body: Json | None = None, **query: Any) -> Json:
        asked = f"{self.url}/api/v1/{path}{'?' + urlencode(query) if query else ''}"
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        request = Request(asked, data=data, headers=headers, method=verb)
        # No proxy for plain HTTP: LCM is on this machine or its network.
        opener = build_opener(ProxyHandler({})) if self.url.startswith("http://") else build_opener()
        try:
            with opener.open(request, timeout=self.timeout) as answer:
                found: Json = json.load(answer)
                return found
        except HTTPError as refused:
            raise _refusal(refused) from None

    def pages(self, path: str, **query: Any) -> Iterator[Json]:
        """Yield the items of a list, over all its pages."""
        while True:
            page = self.send("GET", path, **query)
            yield from page["items"]
            if not page.get("next_cursor"):
                return
            query["cursor"] = page["next_cursor"]


def _refusal(refused: HTTPError) -> LcmRefusal:
    try:
        problem = json.load(refused)
    except ValueError:
        problem = {}
    return LcmRefusal(refused.code, str(problem.get("code", "")), str(problem.get("detail", refused.reason)))


@dataclass(frozen=True)
class _Place:
    """A transcript of the SDK, and the conversations that hold it."""

    project: str
    session: str
    subpath: str

    @classmethod
    def of(cls, key: SessionKey | SessionListSubkeysKey) -> _Place:
        return cls(key["project_key"], key["session_id"], str(key.get("subpath") or ""))

    @property
    def name(self) -> str:
        """The first conversation's name; after a deletion, the next adds a number."""
        parts = [self.project, self.session, *([self.subpath] if self.subpath else [])]
        return ":".join([PREFIX, *(re.sub("[%:#]", lambda mark: quote(mark[0], safe=""), part) for part in parts)])

    @property
    def metadata(self) -> Json:
        return {"session_id": self.session, "subpath": self.subpath}


class LcmSessionStore(SessionStore):
    """A `SessionStore` on LCM's REST API.

    LCM never deletes: `delete` hides a session from this store; its messages stay in LCM, where searches find them. An
    administrator can erase them there.
    """

    def __init__(self, url: str | None = None, token: str | None = None, *, timeout: float = 30) -> None:
        """Use LCM_BASE_URL and LCM_TOKEN by default; the key needs the scope `write`."""
        address = url or os.environ.get("LCM_BASE_URL") or "http://127.0.0.1:8000"
        self._rest = _Rest(address.rstrip("/"), token or os.environ.get("LCM_TOKEN", ""), timeout)
        # Appends to one transcript run one at a time: each reads, updates and rewrites the session's summary.
        self._locks: WeakValueDictionary[_Place, anyio.Lock] = WeakValueDictionary()

    async def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Append entries; one with a `uuid` that is stored already is skipped."""
        if not entries:
            return
        place = _Place.of(key)
        lock = self._locks.setdefault(place, anyio.Lock())
        async with lock:
            await anyio.to_thread.run_sync(self._append, place, key, entries)

    async def load(self, key: SessionKey) -> list[SessionStoreEntry] | None:
        """Return all entries in order; None if there are none."""
        return await anyio.to_thread.run_sync(self._load, _Place.of(key))

    async def list_sessions(self, project_key: str) -> list[SessionStoreListEntry]:
        return [
            {"session_id": each["session_id"], "mtime": each["mtime"]}
            for each in await self.list_session_summaries(project_key)
        ]

    async def list_session_summaries(self, project_key: str) -> list[SessionSummaryEntry]:
        """Return the sessions' summaries as folded by `append`, without subagents."""
        found = await anyio.to_thread.run_sync(self._kept, project_key, {"subpath": ""})
        return [
            {
                "session_id": each["metadata"][OWN]["session_id"],
                "mtime": _milliseconds(each["updated_at"]),
                "data": each["metadata"][OWN].get("summary", {}),
            }
            for each in found
        ]

    async def list_subkeys(self, key: SessionListSubkeysKey) -> list[str]:
        found = await anyio.to_thread.run_sync(self._kept, key["project_key"], {"session_id": key["session_id"]})
        return [subpath for each in found if (subpath := each["metadata"][OWN]["subpath"])]

    async def delete(self, key: SessionKey) -> None:
        """Hide a transcript from this store; for a session, its subagents' too."""
        await anyio.to_thread.run_sync(self._delete, _Place.of(key))

    def _append(self, place: _Place, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        conversation = self._open(place)
        path = f"conversations/{conversation['conversation_id']}/"
        for batch in _batches(entries):
            # Append messages first: each has an idempotency key, so a retry stores none twice.
            messages = [message for entry in batch if (message := _message_of(entry)) is not None]
            if messages:
                self._append_messages(path, messages)
            self._rest.send("POST", path + "journal/", {"entries": batch})
        if not place.subpath:
            self._fold(conversation, path, key, entries)

    def _append_messages(self, path: str, messages: Sequence[Json]) -> None:
        """Append messages; if LCM refuses one of them, append the others one by one."""
        try:
            self._rest.send("POST", path + "messages/", {"format": "anthropic", "messages": messages})
        except LcmRefusal as refused:
            if refused.status not in (400, 409, 413, 422):
                raise
            if len(messages) == 1:
                # Go on: the journal still gets the whole entry.
                logger.warning("an entry is no message for LCM: %s", refused.code)
                return
            for message in messages:
                self._append_messages(path, [message])

    def _fold(self, conversation: Json, path: str, key: SessionKey, entries: list[SessionStoreEntry]) -> None:
        """Update the session's summary, if the entries change it."""
        own = {**_Place.of(key).metadata, **conversation["metadata"].get(OWN, {})}
        before: SessionSummaryEntry | None = None
        if "summary" in own:
            before = {"session_id": key["session_id"], "mtime": 0, "data": own["summary"]}
        folded = fold_session_summary(before, key, entries)["data"]
        data = {name: _storable(value) for name, value in folded.items()}
        if data != own.get("summary"):
            metadata = {**conversation["metadata"], OWN: {**own, "summary": data}}
            self._rest.send("PUT", path, {"metadata": metadata})

    def _open(self, place: _Place) -> Json:
        """Find or open the conversation of a transcript."""
        found = self._conversations(place)
        kept = [each for each in found if not each["metadata"][OWN].get("is_deleted")]
        if kept:
            return kept[0]
        given: Json = {
            "session_id": f"{place.name}#{len(found) + 1}" if found else place.name,
            "project": place.project,
            "metadata": {OWN: place.metadata},
        }
        if place.subpath:
            parents = self._conversations(_Place(place.project, place.session, ""))
            if parents:
                given["parent_session_id"] = parents[-1]["session_id"]
        return self._rest.send("POST", "conversations/", given)

    def _load(self, place: _Place) -> list[SessionStoreEntry] | None:
        for each in self._conversations(place):
            if not each["metadata"][OWN].get("is_deleted"):
                path = f"conversations/{each['conversation_id']}/journal/"
                # The `entry` of an erased line is null.
                found = [line["entry"] for line in self._rest.pages(path, limit=1000) if line.get("entry") is not None]
                return found or None
        return None

    def _delete(self, place: _Place) -> None:
        where = {"session_id": place.session, **({"subpath": place.subpath} if place.subpath else {})}
        for each in self._kept(place.project, where):
            own = {**each["metadata"][OWN], "is_deleted": True}
            body = {"metadata": {**each["metadata"], OWN: own}}
            self._rest.send("PUT", f"conversations/{each['conversation_id']}/", body)

    def _conversations(self, place: _Place) -> list[Json]:
        """Return a transcript's conversations; all but the last (newest) are deleted."""
        return list(self._listed(place.project, place.name, place.metadata))

    def _kept(self, project: str, where: Json) -> list[Json]:
        """Return a project's conversations that were not deleted, filtered by metadata."""
        found = self._listed(project, f"{PREFIX}:", where)
        return [each for each in found if not each["metadata"][OWN].get("is_deleted")]

    def _listed(self, project: str, prefix: str, where: Json) -> Iterator[Json]:
        has = json.dumps({OWN: where})
        return self._rest.pages("conversations/", project=project, session_prefix=prefix, has_metadata=has, limit=1000)


def _message_of(entry: Mapping[str, Any]) -> Json | None:
    """Return the message of an entry, with its uuid as idempotency key, or None."""
    message, uuid = entry.get("message"), entry.get("uuid")
    if entry.get("type") not in ("user", "assistant") or not isinstance(message, Mapping):
        return None
    if not uuid or not isinstance(uuid, str) or "role" not in message or "content" not in message:
        return None
    return {**message, "idempotency_key": uuid}


def _storable(value: Any) -> Any:
    """Replace the characters of a text that LCM's metadata cannot hold."""
    return _UNSTORABLE.sub("\ufffd", value) if isinstance(value, str) else value


def _batches(entries: Sequence[SessionStoreEntry]) -> Iterator[list[SessionStoreEntry]]:
    """Yield entries in batches of a size that LCM accepts."""
    batch: list[SessionStoreEntry] = []
    size = 0
    for entry in entries:
        own = len(json.dumps(entry))
        if batch and (len(batch) == MOST_ENTRIES or size + own > MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += own
    if batch:
        yield batch


def _milliseconds(moment: str) -> int:
    return int(datetime.fromisoformat(moment).timestamp() * 1000)
