"""MCP over HTTP: an ASGI application served beside the site.

It is stateless: every message carries its API key, and no message depends on an earlier one. So there is no session
that could be hijacked, must be kept alive, or is lost with a process.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http.request import split_domain_port, validate_host
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response

from conversations.errors import Forbidden, NotFound
from lcmsite.access.keys import Caller
from lcmsite.api.throttling import admit
from lcmsite.catalogue import json_text
from lcmsite.catalogue.json_text import as_bytes
from lcmsite.catalogue.operation import Operation
from lcmsite.catalogue.problems import MethodNotAllowed, UnsupportedMediaType
from lcmsite.mcp.calls import CallRunner, may_hold_surrogates, report_problem, without_surrogates
from lcmsite.mcp.mcp_server import SENT_MESSAGE, Context, build_server
from lcmsite.mcp.tool_list import chosen_tools
from lcmsite.server.incoming import ClientGone, Receive, Scope, Send, declared_length, read_body

PATH = "/mcp"
CALLER = "lcm.caller"
CHOSEN_TOOLS = "lcm.tools"
LIMIT_HEADERS = "lcm.allowed"
JSON = "application/json"

App = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class RequestGuard:
    """Checks key, size and JSON before the SDK reads a request."""

    inner: App
    runner: CallRunner

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.inner(scope, receive, send)
            return
        try:
            message = await self._check_request(scope, receive)
        except ClientGone:
            return
        except Exception as error:
            await _problem_response(error)(scope, receive, send)
            return
        unread = [message]

        async def receive_again() -> MutableMapping[str, Any]:
            return unread.pop() if unread else await receive()

        async def send_with_limits(event: MutableMapping[str, Any]) -> None:
            if event["type"] == "http.response.start":
                limits = [(name.lower().encode(), value.encode()) for name, value in scope[LIMIT_HEADERS].items()]
                event = {**event, "headers": [*event.get("headers", ()), *limits]}
            await send(event)

        await self.inner(scope, receive_again, send_with_limits)

    async def _check_request(self, scope: Scope, receive: Receive) -> MutableMapping[str, Any]:
        """Check a request; return its body. Sets caller, tools and message in scope."""
        headers = Headers(scope=scope)
        _require_host(headers)
        if scope["path"].rstrip("/") != PATH:
            raise NotFound(f"There is nothing at this path; the tools for agents are at {PATH}.", code="no_such_path")
        # The key is checked before the body is read.
        authorization = headers.get("authorization", "")
        scope[CALLER], scope[LIMIT_HEADERS] = await self.runner.run(lambda: admit(authorization))
        scope[CHOSEN_TOOLS] = chosen_tools(QueryParams(scope.get("query_string", b"")).get("tools", ""))
        if scope["method"] != "POST":
            # A GET would open a stream for messages of the server, which sends none.
            raise MethodNotAllowed(f"This path does not take {scope['method'][:20]} requests; send a POST.")
        if headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            raise UnsupportedMediaType("The body must be JSON, sent as Content-Type: application/json.")
        # A body that is declared too large is refused before it is read.
        declared_length(scope)
        with await read_body(receive) as received:
            body = received.read()
        message = json_text.parse(body)
        if may_hold_surrogates(body):
            scope[SENT_MESSAGE] = message if isinstance(message, dict) else None
            body = json.dumps(without_surrogates(message)).encode()
        scope["path"] = PATH
        return {"type": "http.request", "body": body, "more_body": False}


def _require_host(headers: Headers) -> None:
    """Refuse foreign hosts and origins, against DNS rebinding."""
    if not _is_allowed_host(headers.get("host", "")):
        raise DisallowedHost
    if "origin" in headers and not _is_allowed_host(_host_of(headers["origin"])):
        raise Forbidden("Requests from this origin are not allowed; LCM_ALLOWED_HOSTS lists the allowed hosts.")


def _host_of(origin: str) -> str:
    with suppress(ValueError):
        return urlsplit(origin).netloc
    return ""


def _is_allowed_host(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)


def _problem_response(error: Exception) -> Response:
    problem = report_problem(error)
    headers = {**problem.headers, **({"Allow": "POST"} if problem.status == 405 else {})}
    return Response(as_bytes(problem.as_json()), status_code=problem.status, media_type=JSON, headers=headers)


def application() -> App:
    """Build the ASGI application, for one event loop."""
    runner = CallRunner()
    server = build_server(caller_of=_caller_of_request, runner=runner, tools_of=_tools_of_request)
    inner = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=settings.DATA_UPLOAD_MAX_MEMORY_SIZE,
        # RequestGuard has checked hosts and origins, by Django's rules.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return RequestGuard(inner=inner, runner=runner)


def _caller_of_request(context: Context) -> Caller:
    assert context.request is not None
    caller: Caller = context.request.scope[CALLER]
    return caller


def _tools_of_request(context: Context) -> Mapping[str, Operation]:
    assert context.request is not None
    chosen: Mapping[str, Operation] = context.request.scope[CHOSEN_TOOLS]
    return chosen
