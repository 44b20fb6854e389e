"""Serve an ASGI application on a socket that other processes may share."""

from __future__ import annotations

import errno
import resource
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Any

from django.conf import settings

from conversations.errors import Invalid, Unavailable

SECONDS_TO_FINISH = 10
# Connections that the system queues while all processes are busy; the system may allow fewer.
BACKLOG = 2048
ACCEPTED_AT_ONCE = 32
SEND_BUFFER_BYTES = 256 * 1024
SECONDS_BETWEEN_SWITCHES = 0.0005


def serve(application: Callable[..., Any], listener: socket.socket, *, lifespan: str) -> None:
    """Serve until SIGTERM; then finish the current requests."""
    _raise_open_files_limit()
    # The event loop releases the interpreter's lock at every send, and has to get the lock back from busy threads.
    sys.setswitchinterval(SECONDS_BETWEEN_SWITCHES)
    # Imported here: `lcm up` imports this module only to bind its ports, and does not need uvicorn.
    import uvicorn

    from lcmsite.server.connection import Connection

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets=sockets)
            # uvicorn has set the length of the system's queue to its own `backlog`: set it again.
            listener.listen(BACKLOG)

    config = uvicorn.Config(
        application,
        http=Connection,
        loop="asyncio",
        ws="none",
        lifespan=lifespan,  # type: ignore[arg-type]  # "on" or "off"
        log_config=None,
        log_level="warning",
        access_log=False,
        # Django's settings decide which proxy headers are trusted.
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=settings.DEPLOYMENT.idle_timeout_seconds,
        timeout_graceful_shutdown=SECONDS_TO_FINISH,
        # asyncio accepts this many new connections before it handles another event.
        backlog=ACCEPTED_AT_ONCE,
    )
    Server(config).run(sockets=[listener])


def bind_port(host: str, port: int, option: str, setting: str, *, taken: Sequence[int] = ()) -> socket.socket:
    """Bind a socket. Raises Unavailable or Invalid, naming the option to change."""
    try:
        if port and port in taken:
            raise OSError(errno.EADDRINUSE, "It is the port of the site")
        return bind_socket(host, port)
    except (OSError, OverflowError) as refusal:
        why = str(getattr(refusal, "strerror", None) or refusal).rstrip(".")
        sentence = f"Cannot listen on {host} port {port}: {why}."
        if getattr(refusal, "errno", None) == errno.EADDRINUSE:
            raise Unavailable(f"{sentence} Choose another port with {option} or {setting}.") from refusal
        raise Invalid(f"{sentence} Choose others with --host and {option}, or LCM_HOST and {setting}.") from refusal


def url_of(host: str, port: int) -> str:
    """The URL of a server that listens on this host, for clients on this machine."""
    name = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"


def bind_socket(host: str, port: int) -> socket.socket:
    """Bind a TCP socket; clients are refused until it is served."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    # asyncio sets TCP_NODELAY only with this protocol.
    bound = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # Limit the buffer of each connection: a client that does not read could fill the system's default of megabytes.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    try:
        bound.bind((host, port))
    except BaseException:
        bound.close()
        raise
    return bound


def _raise_open_files_limit() -> None:
    """Raise the soft limit of open files to the hard one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
