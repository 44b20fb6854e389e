"""Serve one port with several processes, restarted when they die."""

from __future__ import annotations

import os
import resource
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import structlog
from django.conf import settings

logger = structlog.get_logger(__name__)

SECONDS_TO_FINISH = 10
# A worker that ends sooner than this ends the server, and `lcm up` decides what to do about that.
SECONDS_OF_A_GOOD_START = 5.0
SECONDS_BETWEEN_LOOKS = 0.1
# More than the clients that come while all workers are busy for a moment; the system may allow fewer.
BACKLOG = 2048
ACCEPTED_AT_ONCE = 32
SEND_BUFFER_BYTES = 256 * 1024
SECONDS_BETWEEN_SWITCHES = 0.0005
ENDS = (signal.SIGTERM, signal.SIGINT)

Load = Callable[[], Callable[..., Any]]


@dataclass
class Server:
    """Serves an ASGI application in worker processes until it is stopped."""

    load: Load
    host: str
    port: int
    workers: int
    lifespan: str
    parent: int
    is_stopping: bool = field(default=False, init=False)
    started_at: dict[int, float] = field(default_factory=dict, init=False)

    def run(self) -> None:
        for each in ENDS:
            signal.signal(each, self._stop)
        raise_limit()
        with listening(self.host, self.port) as listener:
            try:
                while not self.is_stopping and os.getppid() == self.parent:
                    while len(self.started_at) < self.workers:
                        self.started_at[forked(lambda: self._serve(listener))] = time.monotonic()
                    time.sleep(SECONDS_BETWEEN_LOOKS)
                    self._bury()
            finally:
                listener.close()
                self._end_workers()

    def _stop(self, *_: Any) -> None:
        self.is_stopping = True

    def _bury(self) -> None:
        """Reap ended workers; SystemExit for one that ended at its start."""
        for pid, started_at in list(self.started_at.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            del self.started_at[pid]
            if self.is_stopping:
                continue
            logger.error("web_worker_ended", exit_status=os.waitstatus_to_exitcode(status))
            if time.monotonic() - started_at < SECONDS_OF_A_GOOD_START:
                sys.exit(1)

    def _end_workers(self) -> None:
        self.is_stopping = True
        deadline = time.monotonic() + SECONDS_TO_FINISH + 2
        for pid in self.started_at:
            os.kill(pid, signal.SIGTERM)
        while self.started_at:
            self._bury()
            if self.started_at and time.monotonic() > deadline:
                for pid in self.started_at:
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.02)

    def _serve(self, listener: socket.socket) -> None:
        # The event loop gives up the interpreter's lock at every send, and waits for it beside threads at work.
        sys.setswitchinterval(SECONDS_BETWEEN_SWITCHES)
        application = self.load()
        # Not imported above: it takes long, and the process that looks after the workers has no use for it.
        import uvicorn

        from lcmsite.server.connection import Connection

        config = uvicorn.Config(
            application,
            http=Connection,
            loop="asyncio",
            ws="none",
            lifespan=self.lifespan,  # type: ignore[arg-type]  # "on" or "off"
            log_config=None,
            log_level="warning",
            access_log=False,
            # `settings` decides what is believed of a proxy.
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=settings.DEPLOYMENT.idle_timeout_seconds,
            timeout_graceful_shutdown=SECONDS_TO_FINISH,
            # As many new connections are accepted before any other event is looked at.
            backlog=ACCEPTED_AT_ONCE,
        )

        class Serving(uvicorn.Server):
            async def startup(self, sockets: list[socket.socket] | None = None) -> None:
                await super().startup(sockets=sockets)
                # uvicorn has bounded the system's queue by the same number.
                listener.listen(BACKLOG)

        Serving(config).run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    """A listening TCP socket; asyncio sets TCP_NODELAY only with this protocol."""
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # For each connection. The system's own bound is megabytes, which a client that does not read could fill.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    listener.bind((host, port))
    listener.listen(BACKLOG)
    return listener


def raise_limit() -> None:
    """Raise the soft limit of open files to the hard one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def forked(work: Callable[[], None]) -> int:
    """Do this in a child process; its number.

    Signals that end a process wait until the child no longer has the handlers of its parent, which would miss them.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    pid = os.fork()
    if not pid:
        _in_child(work)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
    return pid


def _in_child(work: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        for each in ENDS:
            signal.signal(each, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDS)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)
