"""Serve the site from this process, on the test database: it starts at once, and its statements can be counted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler
from django.core.wsgi import get_wsgi_application
from django.db import connections


class _Handler(WSGIRequestHandler):
    """Without a line on the terminal for every request, and each thread's connections closed when it ends."""

    def log_message(self, format: str, *args: object) -> None:
        pass

    def handle(self) -> None:
        try:
            super().handle()
        finally:
            connections.close_all()


@contextmanager
def served() -> Iterator[str]:
    """Its address, as long as it is there."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.set_app(get_wsgi_application())
    running = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    running.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        running.join()
