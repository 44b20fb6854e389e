"""ASGI application of the gateway: check the key, pick the route, report errors."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import httpx2
import structlog
from cachetools import TTLCache
from django.conf import settings

from conversations.errors import NotFound, Unauthenticated, Unavailable
from lcmsite.access.keys import LONGEST_KEY, PREFIX, Caller, caller_of_hash, hash_of_key
from lcmsite.catalogue.problems import INTERNAL, Problem, problem_of
from lcmsite.connections import closing_connections
from lcmsite.gateway.forwarding import Header, build_client
from lcmsite.gateway.passing_request import SLOW_SECONDS, PassingRequest
from lcmsite.gateway.recording.exchange_spool import SpoolInUse
from lcmsite.gateway.recording.recordings import Recordings
from lcmsite.gateway.surfaces import Surface, surface_of
from lcmsite.gateway.upstreams import Route, Routes, parse_rules, parse_upstreams
from lcmsite.server.incoming import ClientGone, Receive, Scope, Send
from lcmsite.types import KeyScope

logger = structlog.get_logger(__name__)

# Timeout for looking up a key that is not in the cache.
UNKNOWN_KEY_SECONDS = 3.0
# After a failed lookup, keys that are not in the cache are accepted for this long; the recording checks them.
PAUSE_SECONDS = 1.0
# How long a valid key stays cached, to be accepted while the database does not answer.
KEY_CACHED_SECONDS = 3600
# The vendors' names of errors, by status.
_ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}
_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class UpstreamFailed(Unavailable):
    code = "upstream_unavailable"


@dataclass
class Gateway:
    """The ASGI application: forwards and records requests. One per process."""

    routes: Routes
    recordings: Recordings
    client: httpx2.AsyncClient = field(default_factory=build_client)
    # Separate from the threads that record, so that key lookups never wait for a slow recording.
    threads: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(2, thread_name_prefix="keys"))
    callers: TTLCache[bytes, Caller] = field(default_factory=lambda: TTLCache(10_000, KEY_CACHED_SECONDS))
    lookups_paused_until: float = 0.0

    @classmethod
    def from_settings(cls) -> Gateway:
        deployment = settings.DEPLOYMENT
        routes = Routes(parse_upstreams(deployment.gateway_upstreams), parse_rules(deployment.gateway_modes))
        return cls(routes, Recordings.in_directory(settings.DATA_DIR, most_bytes=deployment.gateway_spool_bytes))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self.recordings.start()
        except SpoolInUse as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.recordings.stop()
        await self.client.aclose()
        await send({"type": "lifespan.shutdown.complete"})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {name.decode("latin-1"): _header_text(value) for name, value in scope["headers"]}
        route = None
        has_begun = False

        async def watched_send(event: Any) -> None:
            nonlocal has_begun
            has_begun = True
            await send(event)

        try:
            raw_path = scope["raw_path"].decode("latin-1")
            if raw_path == "/healthz":
                await _send_answer(watched_send, 200, [(b"content-type", b"text/plain")], b"alive\n")
                return
            route = self.routes.route(scope["method"], raw_path, headers)
            if route is None:
                raise NotFound("There is no such upstream; LCM_GATEWAY_UPSTREAMS lists them.", code="no_such_upstream")
            key_hash = _key_hash(route, headers)
            caller = await self._look_up_caller(key_hash)
            rule = self.routes.rule(route, api_key_id=caller.api_key_id if caller else None, headers=headers)
            passing = PassingRequest(
                self.client, self.recordings, scope, receive, watched_send, headers, route, rule, key_hash
            )
            await passing.pass_on()
        except ClientGone:
            return
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            logger.info("gateway_upstream_failed", upstream=route and route.upstream, reason=type(error).__name__)
            if has_begun:
                # Without a final body event the server closes the connection: the client sees a truncated answer.
                return
            is_timeout = isinstance(error, httpx2.TimeoutException)
            why = "did not answer in time" if is_timeout else "cannot be reached, or broke off"
            failure = UpstreamFailed(f"The upstream {route and route.upstream} {why}.")
            await self._refuse(watched_send, failure, scope)
        except Exception as error:
            if has_begun:
                raise
            await self._refuse(watched_send, error, scope)

    async def _refuse(self, send: Send, error: Exception, scope: Scope) -> None:
        problem = problem_of(error)
        if problem is INTERNAL:
            logger.error("gateway_failed", exc_info=error)
        surface, _ = surface_of(scope["method"], scope["raw_path"].decode("latin-1")) or (None, None)
        body = json.dumps(_refusal(problem, surface)).encode()
        given = {
            "content-type": "application/json",
            "content-length": str(len(body)),
            **{name.lower(): value for name, value in problem.headers.items() if name != "WWW-Authenticate"},
            "x-lcm-status": f"refused; reason={problem.code}",
        }
        headers = [(name.encode(), value.encode()) for name, value in given.items()]
        await _send_answer(send, 502 if isinstance(error, UpstreamFailed) else problem.status, headers, body)

    async def _look_up_caller(self, key_hash: bytes) -> Caller | None:
        """Return the caller that a key belongs to; None if it cannot be looked up now.

        While the database does not answer, a key that was valid within the hour gets its cached caller; any other is
        checked when the exchange is recorded. Raises if the key is invalid or lacks the scope `write`.
        """
        cached = self.callers.get(key_hash)
        if cached is not None and self.recordings.is_down:
            return cached
        if cached is None and time.monotonic() < self.lookups_paused_until:
            return None
        try:
            async with asyncio.timeout(UNKNOWN_KEY_SECONDS if cached is None else SLOW_SECONDS):
                look_up = partial(closing_connections, partial(caller_of_hash, key_hash))
                caller = await asyncio.get_running_loop().run_in_executor(self.threads, look_up)
        except TimeoutError:
            return self._pause_lookups(cached)
        except Exception as error:
            if problem_of(error).retryable:
                return self._pause_lookups(cached)
            self.callers.pop(key_hash, None)
            raise
        caller.require(KeyScope.WRITE)
        self.callers[key_hash] = caller
        return caller

    def _pause_lookups(self, cached: Caller | None) -> Caller | None:
        if cached is None:
            self.lookups_paused_until = time.monotonic() + PAUSE_SECONDS
        return cached


async def _send_answer(send: Send, status: int, headers: list[Header], body: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body, "more_body": False})


def _header_text(value: bytes) -> str:
    """Decode a header: UTF-8, or latin-1 if it is not valid UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _key_hash(route: Route, headers: dict[str, str]) -> bytes:
    """Hash LCM's key in a header or the path. Raises Unauthenticated without a key."""
    bearer = headers.get("authorization", "").partition(" ")[2].strip()
    key = headers.get("x-lcm-api-key", "").strip() or route.key or (bearer if bearer.startswith(PREFIX) else "")
    if not (key.startswith(PREFIX) and len(key) <= LONGEST_KEY and key.isascii()):
        raise Unauthenticated("Send LCM's key as the header x-lcm-api-key, or in the path: /k/lcm_.../v1/...")
    return hash_of_key(key)


def application() -> Gateway:
    """Build the gateway from the settings."""
    return Gateway.from_settings()


def _refusal(problem: Problem, surface: Surface | None) -> Mapping[str, Any]:
    """Return an error in the form of the vendor's API, or of LCM's own."""
    if surface is None:
        return problem.as_json()
    status, message = problem.status, f"LCM gateway: {problem.detail}"
    if surface is Surface.MESSAGES:
        kind = _ANTHROPIC_TYPES.get(status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    kind = _OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": problem.code}}
