"""Tells a running request that its client has closed the connection."""

from __future__ import annotations

import threading
from collections.abc import Callable

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

    def remove_callback(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    def forget_callbacks(self) -> None:
        """Drop the callbacks of a request that is over: the connection may serve another one."""
        with self._lock:
            self._callbacks.clear()

    def set(self) -> None:
        with self._lock:
            self._is_set = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
