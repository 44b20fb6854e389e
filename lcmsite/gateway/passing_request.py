"""Forward one request to a vendor, return its answer, and have both recorded."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import httpx2
import structlog

from conversations.errors import Unavailable
from lcmsite.catalogue.problems import RequestTooLarge
from lcmsite.gateway.decoding import Decoder, decode_body, decode_in_steps, decoder_for
from lcmsite.gateway.forwarding import Header, Watcher, forward, headers_for_upstream, query_for_upstream
from lcmsite.gateway.lookups.lookup_rounds import LookupRounds
from lcmsite.gateway.lookups.offering import Lookups
from lcmsite.gateway.recording.exchange import Exchange, Outcome
from lcmsite.gateway.recording.recordings import Pending, Recordings
from lcmsite.gateway.recording.session_finding import hints_of, require_own_session, session_of
from lcmsite.gateway.surfaces import Task, retrieving_body
from lcmsite.gateway.surfaces_answer import AnswerReader
from lcmsite.gateway.upstreams import Mode, Route, Rule
from lcmsite.gateway.window.types import Assembled
from lcmsite.gateway.window.windows import assemble_count_request, assemble_recorded, header_values
from lcmsite.ops.metrics.counters import EXCHANGES
from lcmsite.server.incoming import ClientGone, Receive, Scope, Send

logger = structlog.get_logger(__name__)

MOST_BODY_BYTES = 32 * 1024**2
# Timeout for looking up a cached key. A recording that is not done after this time is reported as slow.
SLOW_SECONDS = 0.15
# How long an answer's headers wait for the recording of the request, to report its result.
GRACE_SECONDS = 0.003
# How long a request waits for its recording, if it must be recorded before it is forwarded.
RECORDING_SECONDS = 5.0
MOST_ERROR_BYTES = 64 * 1024


@dataclass
class PassingRequest:
    """One client request, from its arrival to the end of its answer."""

    client: httpx2.AsyncClient
    recordings: Recordings
    scope: Scope
    receive: Receive
    send: Send
    headers: dict[str, str]
    route: Route
    rule: Rule
    key_hash: bytes
    began: float = field(default_factory=time.monotonic)
    pending: Pending | None = None
    # Reported for a request that is not recorded.
    status: str = "passed"
    assembled: Assembled | None = None
    # Set when the whole body has arrived.
    body_received: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def should_record(self) -> bool:
        is_known = self.route.surface is not None and self.route.task is not Task.COUNT
        return is_known and self.rule.mode is not Mode.OFF

    async def pass_on(self) -> None:
        """Forward the request, and record, shorten or count it according to its rule.

        Raises Invalid if it is to be recorded in a session that can have no such name.
        """
        if self.route.task is Task.COUNT and self.rule.mode is Mode.ASSEMBLE and not self.recordings.is_down:
            await self._forward_counted(await self._read_body())
            return
        if not self.should_record:
            EXCHANGES.labels("passed").inc()
            self.status = f"passed; reason={'off' if self.rule.mode is Mode.OFF else 'not-recorded'}"
            has_body = "content-length" in self.headers or "transfer-encoding" in self.headers
            await self._forward(self._receive_chunks() if has_body else b"", Watcher())
            return
        if self.route.task is Task.RETRIEVE:
            await self._forward_retrieval(await self._read_body())
            return
        require_own_session(self.headers)
        body = await self._read_body()
        await self._forward_recorded(body)

    async def _forward_counted(self, body: bytes) -> None:
        """Forward a token count request with the messages that would be sent."""
        EXCHANGES.labels("passed").inc()
        self.status = "passed; reason=not-recorded"
        assembled = await assemble_count_request(await self._build_exchange(body), with_lookups=self.rule.has_lookups)
        if assembled is None or assembled.shorter is None:
            await self._forward(body, Watcher())
            return
        self.assembled = assembled
        await self._forward(assembled.shorter.body, Watcher(), is_changed=True)

    async def _build_exchange(self, body: bytes) -> Exchange:
        assert self.route.surface is not None and self.route.task is not None
        try:
            if coding := self.headers.get("content-encoding", ""):
                body = await asyncio.to_thread(decode_body, body, coding, most=MOST_BODY_BYTES)
        except ValueError as wrong:
            logger.info("gateway_body_not_decoded", reason=str(wrong))
        return Exchange(
            exchange_key=str(uuid.uuid4()),
            received_at=datetime.now(UTC),
            key_hash=self.key_hash,
            surface=self.route.surface,
            task=self.route.task,
            headers=hints_of(self.headers),
            body=body,
        )

    async def _forward_retrieval(self, body: bytes) -> None:
        """Forward a retrieval; record its answer if the vendor has finished it."""
        self.status = "recording"
        exchange = replace(await self._build_exchange(b""), body=retrieving_body(self.route.path))
        answer = AnswerObserver(request=self, exchange=exchange)
        try:
            await self._forward(body, answer)
        finally:
            outcome = answer.outcome()
            if outcome.answer is not None and outcome.answer.is_complete:
                self.recordings.end(self.recordings.begin(exchange), lambda: outcome)

    async def _forward_recorded(self, body: bytes) -> None:
        exchange = await self._build_exchange(body)
        is_awaited = self.rule.fail_closed or self.rule.mode in (Mode.ASSEMBLE, Mode.DRY_RUN)
        self.pending = self.recordings.begin(exchange, is_awaited=is_awaited)
        answer = AnswerObserver(request=self, exchange=exchange)
        if is_awaited:
            await asyncio.wait([self.pending.task], timeout=RECORDING_SECONDS)
            if self.pending.recorded is None and self.rule.fail_closed:
                self.recordings.abandon(self.pending)
                reason = self.pending.reason or "slow"
                raise Unavailable(
                    f"LCM could not record this request ({reason}), and fail_closed forbids forwarding it."
                )
        try:
            shorter = await self._shorten() if self.rule.mode in (Mode.ASSEMBLE, Mode.DRY_RUN) else None
            if shorter is None:
                await self._forward(body, answer)
            elif self.assembled is not None and self.assembled.lookup_room:
                await self._forward_with_lookups(shorter, self.assembled.lookup_room, answer)
            else:
                await self._forward(shorter, answer, is_changed=True)
        finally:
            self.recordings.end(self.pending, answer.outcome)

    async def _shorten(self) -> bytes | None:
        """Return the shortened body; None to forward the original, as in a dry run."""
        assert self.pending is not None
        self.assembled = await assemble_recorded(
            self.pending.exchange,
            self.pending.recorded,
            is_trial=self.rule.mode is Mode.DRY_RUN,
            with_lookups=self.rule.has_lookups,
        )
        if self.assembled is None or self.assembled.shorter is None or self.rule.mode is Mode.DRY_RUN:
            return None
        return self.assembled.shorter.body

    async def _forward(self, body: bytes | AsyncIterator[bytes], watcher: Watcher, *, is_changed: bool = False) -> None:
        upstream = self._open_upstream(body, is_changed=is_changed)
        work = forward(upstream, send=self.send, own_headers=self._own_headers, watcher=watcher)
        if isinstance(body, bytes):
            self.body_received.set()
        await _run_unless_gone(asyncio.create_task(work), self.receive, self.body_received)

    async def _forward_with_lookups(self, body: bytes, room: int, answer: AnswerObserver) -> None:
        """Forward a request that offers LCM's tools, and answer their calls."""
        assert self.route.surface is not None
        self.body_received.set()
        rounds = LookupRounds(
            surface=self.route.surface,
            lookups=Lookups(self.key_hash, room),
            open_upstream=lambda changed: self._open_upstream(changed, is_changed=True),
            send=self.send,
            own_headers=self._own_headers,
            watcher=answer,
        )
        try:
            await _run_unless_gone(asyncio.create_task(rounds.send_answer(body)), self.receive, self.body_received)
        finally:
            answer.lookups = rounds.journal_entry

    @asynccontextmanager
    async def _open_upstream(
        self, body: bytes | AsyncIterator[bytes], *, is_changed: bool
    ) -> AsyncIterator[httpx2.Response]:
        """Send the request and yield the open response. Raises httpx2.HTTPError."""
        url, query = httpx2.URL(self.route.url), query_for_upstream(self.scope["query_string"])
        headers = headers_for_upstream(
            self.scope["headers"],
            host=url.netloc,
            is_read=self.should_record,
            new_length=len(body) if is_changed and isinstance(body, bytes) else None,
        )
        url = url.copy_with(raw_path=url.raw_path + (b"?" + query if query else b""))
        request = httpx2.Request(self.scope["method"], url, headers=headers, content=body)
        response = await self.client.send(request, stream=True)
        try:
            yield response
        finally:
            # Close it even if this task is cancelled: otherwise the vendor keeps generating for a client that has left.
            await asyncio.shield(response.aclose())

    # Headers of the answer

    async def _own_headers(self) -> Iterable[Header]:
        values: dict[str, object] = {"status": self.status}
        if self.pending is not None:
            if self.pending.has_begun:
                await asyncio.wait([self.pending.task], timeout=GRACE_SECONDS)
            values = self._recording_values(self.pending)
        if self.assembled is not None:
            values |= header_values(self.assembled, is_trial=self.rule.mode is Mode.DRY_RUN)
        return [(f"x-lcm-{name}".encode(), str(value).encode()) for name, value in values.items() if value != ""]

    def _recording_values(self, pending: Pending) -> dict[str, object]:
        recorded = pending.recorded
        session = session_of(pending.exchange.headers, {})
        name, source = (session.name, session.source) if session else ("", "")
        values: dict[str, object] = {}
        if recorded is not None:
            name, source = recorded.session, recorded.source
            values["status"] = f"recorded; side={recorded.side}" if recorded.side else "recorded"
            values["conversation"] = recorded.conversation_id
        elif pending.task.done():
            values["status"] = f"degraded; reason={pending.reason or 'database'}"
        else:
            is_slow = time.monotonic() - self.began > SLOW_SECONDS
            values["status"] = "degraded; reason=slow" if is_slow else "recording"
        if name.isascii() and name.isprintable():
            values |= {"session-id": name, "session-source": source}
        return values

    # Body of the request

    async def _read_body(self) -> bytes:
        length = self.headers.get("content-length", "0")
        if length.isdigit() and int(length[:19]) > MOST_BODY_BYTES:
            raise RequestTooLarge(f"A request of over {MOST_BODY_BYTES // 1024**2} MiB is not forwarded.")
        body = bytearray()
        async for piece in self._receive_chunks():
            body += piece
            if len(body) > MOST_BODY_BYTES:
                raise RequestTooLarge(f"A request of over {MOST_BODY_BYTES // 1024**2} MiB is not forwarded.")
        return bytes(body)

    async def _receive_chunks(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            event = await self.receive()
            if event["type"] != "http.request":
                raise ClientGone
            if event.get("body"):
                yield event["body"]
            more = event.get("more_body", False)
        self.body_received.set()


@dataclass(kw_only=True)
class AnswerObserver(Watcher):
    """Parses the answer for recording while it is forwarded to the client.

    Keep it out of reference cycles: a request and its answer can take megabytes, which reference counting frees at once
    and the garbage collector only much later.
    """

    request: PassingRequest
    exchange: Exchange
    reader: AnswerReader | None = None
    decoder: Decoder | None = None
    error_body: bytearray = field(default_factory=bytearray)
    has_failed: bool = False
    # The lookups of LCM's tools, for the journal; None if there were none.
    lookups: dict[str, Any] | None = None

    def on_chunk(self, piece: bytes) -> None:
        """Parse a forwarded chunk; after a parse error, the answer is not recorded."""
        if self.request.pending is not None:
            self.request.pending.is_forwarded.set()
        if self.has_failed:
            return
        try:
            self._parse_chunk(piece)
        except Exception as error:
            self.has_failed = True
            logger.warning("gateway_answer_not_read", reason=type(error).__name__)

    def _parse_chunk(self, piece: bytes) -> None:
        assert self.status is not None
        is_error = not 200 <= self.status < 300
        if is_error and len(self.error_body) >= MOST_ERROR_BYTES:
            return
        if self.decoder is None:
            self.decoder = decoder_for(self.headers.get("content-encoding", ""))
        if self.reader is None and not is_error:
            is_stream = self.headers.get("content-type", "").lower().startswith("text/event-stream")
            self.reader = AnswerReader(self.exchange.surface, is_stream)
        for data in decode_in_steps(self.decoder, piece):
            if self.reader is not None:
                self.reader.feed(data)
            else:
                self.error_body += data[: MOST_ERROR_BYTES - len(self.error_body)]

    def outcome(self) -> Outcome:
        """Build the outcome to record: status, duration, and the answer or the error."""
        milliseconds = int((time.monotonic() - self.request.began) * 1000)
        if self.reader is None or self.has_failed:
            error = _error_in(bytes(self.error_body)) or ("" if self.status else "no_answer")
            return Outcome(self.status, milliseconds, error)
        if self.reader.skipped_by:
            logger.warning("gateway_event_not_read", reason=self.reader.skipped_by)
        try:
            return Outcome(self.status, milliseconds, answer=self.reader.finish(), lookups=self.lookups)
        except Exception as error:
            # A truncated answer that is not a stream is not valid JSON.
            return Outcome(self.status, milliseconds, f"unreadable: {type(error).__name__}")


async def _run_unless_gone(work: asyncio.Task[None], receive: Receive, body_received: asyncio.Event) -> None:
    """Await the work; if the client disconnects, cancel it and raise ClientGone."""

    async def disconnected() -> None:
        # Until the body is complete, the code that reads it receives the disconnect event.
        await body_received.wait()
        while (await receive())["type"] == "http.request":
            pass

    gone = asyncio.create_task(disconnected())
    try:
        await asyncio.wait([work, gone], return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            work.cancel()
            await asyncio.wait([work])
            raise ClientGone
        await work
    finally:
        gone.cancel()
        work.cancel()


def _error_in(body: bytes) -> str:
    """Return the error type or code in a vendor's error body, if there is one."""
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        return ""
    words = [error.get("type"), error.get("code")] if isinstance(error, dict) else [error]
    return next((word[:100] for word in words if isinstance(word, str)), "")
