"""Cancel the statements of a heavy operation when its client disconnects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any

import psycopg
from django.db import DEFAULT_DB_ALIAS, connections
from prometheus_client import Counter

from conversations.errors import Unavailable

SECONDS_BETWEEN_CANCELS = 0.1
LONGEST_CANCEL_SECONDS = 2.0
CANCELLED = Counter("lcm_cancelled_total", "Heavy operations cancelled because their client disconnected.")

DISCONNECTED = "lcm.disconnected"
"""The key of a request's `Disconnected` in the WSGI environ, which is Django's `request.META`."""


class Disconnected:
    """An event that is set when the client goes; safe to use from any thread."""

    def __init__(self) -> None:
        self._is_set = False
        self._callbacks: list[Callable[[], object]] = []
        self._lock = threading.Lock()

    def is_set(self) -> bool:
        return self._is_set

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Call this once when the client goes; at once if it has gone.

        It runs on the server's event loop, so it must not block.
        """
        with self._lock:
            if not self._is_set:
                self._callbacks.append(callback)
                return
        callback()

    def forget_callbacks(self) -> None:
        """Drop the callbacks of a finished request; the connection may serve more."""
        with self._lock:
            self._callbacks.clear()

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()


CLIENT: ContextVar[Disconnected | None] = ContextVar("client", default=None)
"""The signal of the request that this thread answers, if its server gives one."""


@contextmanager
def cancelled_with_client() -> Iterator[None]:
    """Cancel the block's statements if the client disconnects meanwhile."""
    client = CLIENT.get()
    if client is None:
        yield
        return
    if client.is_set():
        CANCELLED.inc()
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
        # Held during a cancel: after `end`, the connection belongs to another request.
        self._lock = threading.Lock()

    def cancel(self) -> None:
        """Start to cancel in another thread; the caller may be the event loop."""
        threading.Thread(target=self._cancel_until_over, name="cancel", daemon=True).start()

    def end(self) -> None:
        with self._lock:
            self._over.set()

    def _cancel_until_over(self) -> None:
        if not self._over.is_set():
            CANCELLED.inc()
        # Repeatedly: between two statements there is nothing to cancel.
        while True:
            with self._lock:
                if self._over.is_set():
                    return
                driver = self._connection.connection
                if driver is not None:
                    with suppress(psycopg.Error):
                        driver.cancel_safe(timeout=LONGEST_CANCEL_SECONDS)
            self._over.wait(SECONDS_BETWEEN_CANCELS)
