"""Cancels the statement of a heavy operation at PostgreSQL when the client that asked for it disconnects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections

from conversations.errors import Unavailable
from lcmsite.metrics.faces import CANCELLED

DISCONNECTED = "lcm.disconnected"
"""Where a server that notices it keeps the signal, in a request's META."""

SECONDS_BETWEEN_CANCELS = 0.1
LONGEST_CANCEL_SECONDS = 2.0


class Signal(Protocol):
    """Set when the client of a request has disconnected."""

    def is_set(self) -> bool: ...

    def add_callback(self, function: Callable[[], None]) -> None:
        """Call the function once, from any thread, when it is set; at once if it is set already."""


class Disconnected:
    """A signal that is set by hand."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        return self._event.is_set()

    def add_callback(self, function: Callable[[], None]) -> None:
        with self._lock:
            if not self._event.is_set():
                self._callbacks.append(function)
                return
        function()

    def set(self) -> None:
        with self._lock:
            self._event.set()
            callbacks, self._callbacks = self._callbacks, []
        for each in callbacks:
            each()


CLIENT: ContextVar[Signal | None] = ContextVar("client", default=None)
"""The signal of the request that this thread answers, if its server gives one."""


@contextmanager
def cancelled_with_client() -> Iterator[None]:
    """Run the block; if the client disconnects meanwhile, its statements are cancelled, each as it runs."""
    client = CLIENT.get()
    if client is None:
        yield
        return
    if client.is_set():
        CANCELLED.add()
        raise Unavailable("The client has disconnected.", code="client_disconnected")
    work = _Work(connections[DEFAULT_DB_ALIAS])
    client.add_callback(work.cancel)
    try:
        yield
    finally:
        work.end()


class _Work:
    """What one thread does on its connection, for another thread to cancel."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._over = threading.Event()
        # Held while a cancel is on its way: behind `end`, the connection is somebody else's.
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Begin to cancel, in a thread of its own: the caller may be the server's event loop."""
        threading.Thread(target=self._cancel_until_over, name="cancel", daemon=True).start()

    def end(self) -> None:
        with self._lock:
            self._over.set()

    def _cancel_until_over(self) -> None:
        if not self._over.is_set():
            CANCELLED.add()
        # Again and again: between two statements there is nothing to cancel.
        while True:
            with self._lock:
                if self._over.is_set():
                    return
                driver = self._connection.connection
                if driver is not None:
                    with suppress(psycopg.Error):
                        driver.cancel_safe(timeout=LONGEST_CANCEL_SECONDS)
            self._over.wait(SECONDS_BETWEEN_CANCELS)
