"""The gateway: an ASGI application that forwards what agents ask their vendors, and records it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import httpx2
import structlog
from cachetools import TTLCache
from django.conf import settings
from django.db import connections

from conversations.errors import NotFound, Unauthenticated, Unavailable
from lcmsite.access.keys import LONGEST_KEY, PREFIX, Caller, caller_of_hash, hash_of_key
from lcmsite.catalogue.problems import INTERNAL, RequestTooLarge, problem_of
from lcmsite.gateway.decoding import decoded
from lcmsite.gateway.forwarding import Header, Watched, a_client, forward, headers_for_upstream
from lcmsite.gateway.own_errors import refusal
from lcmsite.gateway.passing_answer import PassingAnswer
from lcmsite.gateway.recording.exchange import Exchange
from lcmsite.gateway.recording.recordings import EXCHANGES, Pending, Recordings, spool_in, unavailable
from lcmsite.gateway.recording.session_finding import hints_of, session_of
from lcmsite.gateway.surfaces import Task
from lcmsite.gateway.upstreams import Mode, Route, Routes, Rule, rules_in, upstreams_in
from lcmsite.gateway.window.types import Assembled
from lcmsite.gateway.window.windows import assemble_recorded, headers_of, headers_without_body
from lcmsite.server.incoming import ClientGone, Receive, Scope, Send
from lcmsite.types import KeyScope

logger = structlog.get_logger(__name__)

MOST_BODY_BYTES = 32 * 1024**2
# Beyond this, the database counts as slow: nothing waits for it any longer.
SLOW_SECONDS = 0.15
# The headers of an answer wait so long to be able to say that its request is recorded.
GRACE_SECONDS = 0.003
# A key that was never valid here is looked up for so long.
UNKNOWN_KEY_SECONDS = 3.0
# A key that was valid is taken for so long while the database does not answer.
KEY_CACHED_SECONDS = 3600
CLOSED_SECONDS = 5.0


class UpstreamFailed(Unavailable):
    code = "upstream_unavailable"


@dataclass
class Gateway:
    """Forwards and records for one process."""

    routes: Routes
    recordings: Recordings
    client: httpx2.AsyncClient = field(default_factory=a_client)
    # Apart from the recording: whoever comes in is looked up while that waits.
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="keys"))
    callers: TTLCache[bytes, Caller] = field(default_factory=lambda: TTLCache(10_000, KEY_CACHED_SECONDS))

    @classmethod
    def from_settings(cls) -> Gateway:
        deployment = settings.DEPLOYMENT
        routes = Routes(upstreams_in(deployment.gateway_upstreams), rules_in(deployment.gateway_modes))
        return cls(routes, Recordings(spool_in(settings.DATA_DIR, most_bytes=deployment.gateway_spool_bytes)))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.recordings.start()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.recordings.stop()
        await self.client.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        route = None
        has_begun = False

        async def watched_send(event: Any) -> None:
            nonlocal has_begun
            has_begun = True
            await send(event)

        try:
            raw_path = scope["raw_path"].decode("latin-1")
            if raw_path == "/healthz":
                await _answer(watched_send, 200, [(b"content-type", b"text/plain")], b"alive\n")
                return
            route = self.routes.route(scope["method"], raw_path, headers)
            if route is None:
                raise NotFound("There is no such upstream; LCM_GATEWAY_UPSTREAMS lists them.", code="no_such_upstream")
            key_hash = _key_hash(route, headers)
            caller = await self._caller(key_hash)
            rule = self.routes.rule(route, api_key_id=caller.api_key_id if caller else None, headers=headers)
            call = _Call(self, scope, receive, watched_send, headers, route, rule, key_hash)
            await call.pass_on()
        except ClientGone:
            return
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            logger.info("gateway_upstream_failed", upstream=route and route.upstream, reason=type(error).__name__)
            if has_begun:
                # Left without its end, the connection is closed: the client sees that the answer was cut off.
                return
            slow = isinstance(error, httpx2.TimeoutException)
            why = "did not answer in time" if slow else "cannot be reached, or broke off"
            failed = UpstreamFailed(f"The upstream {route and route.upstream} {why}.")
            await self._refuse(watched_send, failed, route)
        except Exception as error:
            if has_begun:
                raise
            await self._refuse(watched_send, error, route)

    async def _refuse(self, send: Send, error: Exception, route: Route | None) -> None:
        problem = problem_of(error)
        if problem is INTERNAL:
            logger.error("gateway_failed", exc_info=error)
        status, headers, body = refusal(problem, route.surface if route else None)
        await _answer(send, 502 if isinstance(error, UpstreamFailed) else status, headers, body)

    async def _caller(self, key_hash: bytes) -> Caller | None:
        """The holder of a key, as the database says or has said.

        While it does not answer, a key that was valid is taken; another one is examined when the exchange is recorded.
        """
        known = self.callers.get(key_hash)
        if self.recordings.is_down:
            return known
        try:
            async with asyncio.timeout(UNKNOWN_KEY_SECONDS if known is None else SLOW_SECONDS):
                caller = await asyncio.get_running_loop().run_in_executor(self.threads, _known, key_hash)
        except TimeoutError:
            return known
        except Exception as error:
            if problem_of(error).retryable:
                return known
            self.callers.pop(key_hash, None)
            raise
        caller.require(KeyScope.WRITE)
        self.callers[key_hash] = caller
        return caller


@dataclass
class _Call:
    """One request on its way."""

    gateway: Gateway
    scope: Scope
    receive: Receive
    send: Send
    headers: dict[str, str]
    route: Route
    rule: Rule
    key_hash: bytes
    began: float = field(default_factory=time.monotonic)
    pending: Pending | None = None
    status: str = "passed"
    more: list[Header] = field(default_factory=list)
    assembled: Assembled | None = None

    @property
    def is_recorded(self) -> bool:
        is_known = self.route.surface is not None and self.route.task is not Task.COUNT
        return is_known and self.rule.mode is not Mode.OFF

    async def pass_on(self) -> None:
        """Forward the request, recorded if it is to be."""
        if not self.is_recorded:
            EXCHANGES.labels("passed").inc()
            self.status = f"passed; reason={'off' if self.rule.mode is Mode.OFF else 'not-recorded'}"
            has_body = "content-length" in self.headers or "transfer-encoding" in self.headers
            await self._forward(self._incoming() if has_body else b"", Watched(lambda piece: None))
            return
        body = await self._body()
        await self._forward_recorded(body)

    async def _forward_recorded(self, body: bytes) -> None:
        assert self.route.surface is not None and self.route.task is not None
        plain = body
        try:
            plain = decoded(body, self.headers.get("content-encoding", ""), most=MOST_BODY_BYTES)
        except ValueError as wrong:
            logger.info("gateway_body_not_decoded", reason=str(wrong))
        exchange = Exchange(
            exchange_key=str(uuid.uuid4()),
            received_at=datetime.now(UTC),
            key_hash=self.key_hash,
            surface=self.route.surface,
            task=self.route.task,
            headers=hints_of(self.headers),
            body=plain,
        )
        waits = self.rule.is_closed or self.rule.mode in (Mode.ASSEMBLE, Mode.DRY_RUN)
        self.pending = self.gateway.recordings.begin(
            exchange, lane=self._lane(), body=None, with_seqs=waits, is_closed=self.rule.is_closed
        )
        answer = PassingAnswer(exchange, self.began)
        watched = answer.watched
        try:
            if waits:
                await asyncio.wait([self.pending.task], timeout=CLOSED_SECONDS)
                if self.pending.recorded is None and self.rule.is_closed:
                    raise unavailable(self.pending.reason or "slow")
                body = await self._assembled(exchange, body)
            await self._forward(body, watched)
        finally:
            self.gateway.recordings.end(self.pending, answer.outcome())

    async def _assembled(self, exchange: Exchange, body: bytes) -> bytes:
        """The body to forward: shorter, in mode assemble, if it is over its window."""
        assert self.pending is not None
        if self.rule.mode in (Mode.ASSEMBLE, Mode.DRY_RUN):
            is_trial = self.rule.mode is Mode.DRY_RUN
            self.assembled = await assemble_recorded(exchange, self.pending.recorded, is_trial=is_trial)
            if self.assembled is not None and self.assembled.shorter is not None and not is_trial:
                self.scope = {**self.scope, "headers": headers_without_body(self.scope["headers"])}
                return self.assembled.shorter.body
        return body

    async def _forward(self, body: bytes | AsyncIterator[bytes], watched: Watched) -> None:
        address = httpx2.URL(self.route.url)
        forwarding = asyncio.create_task(
            forward(
                self.gateway.client,
                method=self.scope["method"],
                url=self.route.url,
                query=self.scope["query_string"],
                headers=headers_for_upstream(self.scope["headers"], host=address.netloc, is_read=self.is_recorded),
                body=body,
                send=self.send,
                own_headers=self._own_headers,
                watched=watched,
            )
        )
        if isinstance(body, bytes):
            await _until_gone(forwarding, self.receive)
        else:
            # The body is still read from the client, whose end is noticed there.
            await forwarding

    # What goes out

    async def _own_headers(self) -> Iterable[Header]:
        if self.pending is not None:
            await asyncio.wait([self.pending.task], timeout=GRACE_SECONDS)
            self._say(self.pending)
        if self.assembled is not None:
            (_, status), *more = headers_of(self.assembled, is_trial=self.rule.mode is Mode.DRY_RUN)
            self.status, self.more = status.decode(), [*self.more, *more]
        values = [(b"x-lcm-status", self.status.encode()), *self.more]
        return [(name, value) for name, value in values if value]

    def _say(self, pending: Pending) -> None:
        recorded = pending.recorded
        session = session_of(pending.exchange.headers, {})
        name, source = (session.name, session.source) if session else ("", "")
        if recorded is not None:
            name, source = recorded.session, recorded.source
            self.more.append((b"x-lcm-conversation", str(recorded.conversation_id).encode()))
            self.status = f"recorded; side={recorded.side}" if recorded.side else "recorded"
        elif pending.task.done():
            self.status = f"degraded; reason={pending.reason or 'database'}"
        else:
            is_slow = time.monotonic() - self.began > SLOW_SECONDS
            self.status = "degraded; reason=slow" if is_slow else "recording"
        if name.isascii():
            self.more += [(b"x-lcm-session-id", name.encode()), (b"x-lcm-session-source", source.encode())]

    # What comes in

    def _lane(self) -> str:
        """Requests of one lane are recorded in their order."""
        session = session_of(hints_of(self.headers), {})
        return f"{self.key_hash.hex()} {session.name if session else ''}"

    async def _body(self) -> bytes:
        length = self.headers.get("content-length", "0")
        if length.isdigit() and int(length[:19]) > MOST_BODY_BYTES:
            raise RequestTooLarge(f"A request of over {MOST_BODY_BYTES // 1024**2} MiB is not forwarded.")
        body = bytearray()
        async for piece in self._incoming():
            body += piece
            if len(body) > MOST_BODY_BYTES:
                raise RequestTooLarge(f"A request of over {MOST_BODY_BYTES // 1024**2} MiB is not forwarded.")
        return bytes(body)

    async def _incoming(self) -> AsyncIterator[bytes]:
        more = True
        while more:
            event = await self.receive()
            if event["type"] != "http.request":
                raise ClientGone
            if event.get("body"):
                yield event["body"]
            more = event.get("more_body", False)


def application() -> Gateway:
    """The gateway of this process, as the settings have it."""
    return Gateway.from_settings()


async def _answer(send: Send, status: int, headers: list[Header], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


async def _until_gone(work: asyncio.Task[None], receive: Receive) -> None:
    """Wait for the work; cancel it when the client goes."""

    async def disconnected() -> None:
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


def _key_hash(route: Route, headers: dict[str, str]) -> bytes:
    """The hash of LCM's key in a header or in the path; Unauthenticated without one."""
    bearer = headers.get("authorization", "").partition(" ")[2].strip()
    key = headers.get("x-lcm-api-key", "").strip() or route.key or (bearer if bearer.startswith(PREFIX) else "")
    if not (key.startswith(PREFIX) and len(key) <= LONGEST_KEY and key.isascii()):
        raise Unauthenticated("Send LCM's key as the header x-lcm-api-key, or in the path: /k/lcm_.../v1/...")
    return hash_of_key(key)


def _known(key_hash: bytes) -> Caller:
    try:
        return caller_of_hash(key_hash)
    finally:
        connections.close_all()
