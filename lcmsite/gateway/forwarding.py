"""Forward requests and answers byte for byte, as soon as each chunk arrives."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field

import httpx2

from lcmsite.gateway.decoding import narrow_accept_encoding
from lcmsite.server.incoming import Send

Header = tuple[bytes, bytes]

CONNECT_SECONDS = 10.0
# Read timeout; models may think for minutes between two chunks.
SILENCE_SECONDS = 600.0
IDLE_CONNECTIONS = 100
# Hop-by-hop headers: they belong to one connection and are not forwarded.
_HOP_BY_HOP = frozenset(
    name.encode()
    for name in (
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "trailers",
        "transfer-encoding", "upgrade", "proxy-connection",
    )
)  # fmt: skip
_OWN_PREFIX = b"x-lcm-"
# Headers for the vendor's key; some clients put LCM's key there.
_CREDENTIALS = frozenset((b"authorization", b"x-api-key", b"api-key", b"x-goog-api-key"))
# The gateway's server sets these headers itself.
_SERVER_HEADERS = frozenset((b"date", b"server"))
_BODY_HEADERS = frozenset((b"content-length", b"content-encoding"))


def build_client() -> httpx2.AsyncClient:
    """Build the HTTP client for all upstreams: long read timeout, no redirects."""
    return httpx2.AsyncClient(
        trust_env=False,
        follow_redirects=False,
        timeout=httpx2.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=30),
    )


def headers_for_upstream(
    headers: Iterable[Header], *, host: bytes, is_read: bool, new_length: int | None = None
) -> list[Header]:
    """Return the client's headers without hop-by-hop headers and LCM's own.

    If LCM reads the answer (`is_read`), `accept-encoding` is narrowed to what it can decode. `new_length` is the length
    of an uncompressed body that replaces the client's.
    """
    found = [(b"host", host)]
    headers = list(headers)
    hop_names = {each.strip().lower() for name, value in headers if name == b"connection" for each in value.split(b",")}
    for name, value in headers:
        if name == b"host" or name in _HOP_BY_HOP or name in hop_names or name.startswith(_OWN_PREFIX):
            continue
        if name in _CREDENTIALS and _is_key_of_lcm(value):
            continue
        if new_length is not None and name in _BODY_HEADERS:
            continue
        if name == b"accept-encoding" and is_read:
            value = narrow_accept_encoding(value.decode("latin-1")).encode("latin-1")
        found.append((name, value))
    if new_length is not None:
        found.append((b"content-length", str(new_length).encode()))
    return found


def query_for_upstream(query: bytes) -> bytes:
    """Return the client's query string without parameters that are a key of LCM."""
    return b"&".join(each for each in query.split(b"&") if not _is_key_of_lcm(each))


def _is_key_of_lcm(value: bytes) -> bool:
    """Whether a credential is a key of LCM, which no vendor may see."""
    return re.search(rb"(?<![\w-])lcm_", value) is not None


@dataclass
class Watcher:
    """Notes an answer's status and headers; subclasses read its chunks."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def on_start(self, response: httpx2.Response) -> None:
        """Note the status and headers."""
        self.status = response.status_code
        self.headers = {name.lower(): value for name, value in response.headers.items()}

    def on_chunk(self, piece: bytes) -> None:
        """Called with each chunk of the body, once it has been sent to the client."""


def headers_for_client(response: httpx2.Response, *, is_rewritten: bool = False) -> list[Header]:
    """Return the upstream's headers without hop-by-hop headers.

    If the body `is_rewritten`, its length and encoding are left out, too.
    """
    left_out = _HOP_BY_HOP | _SERVER_HEADERS | (_BODY_HEADERS if is_rewritten else frozenset())
    return [
        (name, value)
        for name, value in response.headers.raw
        if name.lower() not in left_out and not name.lower().startswith(_OWN_PREFIX)
    ]


async def forward(
    upstream: AbstractAsyncContextManager[httpx2.Response],
    *,
    send: Send,
    own_headers: Callable[[], Awaitable[Iterable[Header]]],
    watcher: Watcher,
) -> None:
    """Stream an answer to the client. Raises httpx2.HTTPError if the upstream fails.

    `own_headers` is called once the upstream's headers have come. A failure after the headers truncates the answer.
    """
    async with upstream as response:
        watcher.on_start(response)
        headers = [*headers_for_client(response), *await own_headers()]
        await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
        async for piece in response.aiter_raw():
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            watcher.on_chunk(piece)
        await send({"type": "http.response.body", "body": b"", "more_body": False})
