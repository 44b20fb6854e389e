"""Forward requests and answers, byte for byte as they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

import httpx2

from lcmsite.gateway.decoding import accepted
from lcmsite.server.incoming import Send

Header = tuple[bytes, bytes]

CONNECT_SECONDS = 10.0
# Of silence; models think for minutes.
SILENCE_SECONDS = 600.0
KEPT_CONNECTIONS = 100
# They are each connection's own.
_HOP = frozenset(
    name.encode()
    for name in (
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "trailers",
        "transfer-encoding", "upgrade", "proxy-connection",
    )
)  # fmt: skip
_OWN = b"x-lcm-"
# Where clients have the key of a vendor, and sometimes put that of LCM.
_CREDENTIALS = frozenset((b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"))
# The server writes its own.
_OF_SERVER = frozenset((b"date", b"server"))
_OF_BODY = frozenset((b"content-length", b"content-encoding"))


def a_client() -> httpx2.AsyncClient:
    """The client for all upstreams; it waits for slow models, and follows nothing."""
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=30),
    )


def headers_for_upstream(
    headers: Iterable[Header], *, host: bytes, is_read: bool, new_length: int | None = None
) -> list[Header]:
    """The client's headers without those of the connection and of LCM.

    Where the answer `is_read`, the codings that are accepted are narrowed to those that LCM can read. `new_length` is
    that of a plain body in place of the client's.
    """
    found = [(b"host", host)]
    headers = list(headers)
    named = {each.strip().lower() for name, value in headers if name == b"connection" for each in value.split(b",")}
    for name, value in headers:
        if name == b"host" or name in _HOP or name in named or name.startswith(_OWN):
            continue
        if name in _CREDENTIALS and _is_key_of_lcm(value):
            continue
        if new_length is not None and name in (b"content-length", b"content-encoding"):
            continue
        if name == b"accept-encoding" and is_read:
            value = accepted(value.decode("latin-1")).encode("latin-1")
        found.append((name, value))
    if new_length is not None:
        found.append((b"content-length", str(new_length).encode()))
    return found


def _is_key_of_lcm(value: bytes) -> bool:
    """Whether a credential is LCM's own, which no vendor may see."""
    return value.strip().rpartition(b" ")[2].startswith(b"lcm_")


@dataclass
class Watched:
    """The status, headers and end of a forwarded answer; subclasses read its body."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    is_whole: bool = False

    def begin(self, response: httpx2.Response) -> None:
        """Take status and headers."""
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    def taken(self, piece: bytes) -> None:
        """Take a piece of the body that has been sent to the client."""


@asynccontextmanager
async def open_upstream(
    client: httpx2.AsyncClient,
    *,
    method: str,
    url: str,
    query: bytes,
    headers: Sequence[Header],
    body: bytes | AsyncIterator[bytes],
) -> AsyncIterator[httpx2.Response]:
    """The answer of an upstream as it begins; httpx2.HTTPError if none came."""
    address = httpx2.URL(url)
    raw_path = address.raw_path + (b"?" + query if query else b"")
    request = httpx2.Request(method, address.copy_with(raw_path=raw_path), headers=list(headers), content=body)
    response = await client.send(request, stream=True)
    try:
        yield response
    finally:
        # Without this, a vendor goes on for a client that has gone.
        await asyncio.shield(response.aclose())


def headers_for_client(response: httpx2.Response, *, is_rewritten: bool = False) -> list[Header]:
    """The upstream's headers without those of the connection.

    Those of a rewritten body are without its length and coding.
    """
    left_out = _HOP | _OF_SERVER | (_OF_BODY if is_rewritten else frozenset())
    return [
        (name, value)
        for name, value in response.headers.raw
        if name.lower() not in left_out and not name.lower().startswith(_OWN)
    ]


async def forward(
    upstream: AbstractAsyncContextManager[httpx2.Response],
    *,
    send: Send,
    own_headers: Callable[[], Awaitable[Iterable[Header]]],
    watched: Watched,
) -> None:
    """Stream an answer to the client; httpx2.HTTPError if none came.

    `own_headers` are asked for when the upstream's have come. What breaks after these have been sent ends the answer.
    """
    async with upstream as response:
        watched.begin(response)
        headers = [*headers_for_client(response), *await own_headers()]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for piece in response.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            watched.taken(piece)
        watched.is_whole = True
        await send({"type": "http.response.body", "body": b"", "more_body": False})
