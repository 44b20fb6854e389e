"""Run one process of `lcm up`.

`python -m lcmsite.ops.processes PARENT web SOCKET`, `... PARENT mcp SOCKET`, `... PARENT gateway SOCKET`, or `...
PARENT worker QUEUE`; a socket is the number of an open descriptor.

Each process shuts down cleanly on SIGTERM, and sends SIGTERM to itself when the process that started it is gone.
"""

import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module

# With Python's default of 700, a page of 45,000 records would cause hundreds of collections.
YOUNGEST_GENERATION = 50_000


@contextmanager
def loading() -> Iterator[None]:
    """Import within the block without garbage collections, then freeze."""
    gc.disable()
    try:
        yield
    finally:
        freeze_loaded()
        gc.enable()


def freeze_loaded() -> None:
    """Exclude existing objects from garbage collection, and collect less often."""
    gc.freeze()
    gc.set_threshold(YOUNGEST_GENERATION, *gc.get_threshold()[1:])


def end_with_parent(parent: int) -> None:
    """Stop this process soon after its parent has ended, even if by SIGKILL."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def serve_site(listener: socket.socket) -> None:
    """Serve pages and the API until it is stopped."""
    with loading():
        from django.urls import get_resolver

        from lcmsite.wsgi import application

        # Loads the URLs now, not with the first request.
        assert get_resolver().url_patterns

        # Imports models, for which Django must be set up.
        from lcmsite.server.front import Front
        from lcmsite.server.serving import serve
    serve(Front(application), listener, lifespan="off")


def serve_application(module: str, listener: socket.socket) -> None:
    """Serve the ASGI application of this module until it is stopped."""
    with loading():
        import django

        django.setup()
        # Imports models, for which Django must be set up.
        from lcmsite.server.serving import serve

        application = import_module(module).application
    serve(application(), listener, lifespan="on")


def work(*, queue: str) -> None:
    """Run the tasks of one queue; when stopped, finish the current ones first."""
    with loading():
        import django
        from django.core.management import call_command

        django.setup()
    call_command("djangohuey", queue=queue)


def main(parent: str, kind: str, argument: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    end_with_parent(int(parent))
    match kind:
        case "web":
            serve_site(socket.socket(fileno=int(argument)))
        case "mcp":
            serve_application("lcmsite.mcp.http_app", socket.socket(fileno=int(argument)))
        case "gateway":
            serve_application("lcmsite.gateway.gateway_app", socket.socket(fileno=int(argument)))
        case "worker":
            work(queue=argument)
        case _:
            sys.exit(f"{kind} is no process of LCM's.")


if __name__ == "__main__":
    main(*sys.argv[1:])
