"""Run one process of `lcm up`.

`python -m lcmsite.ops.processes PARENT web HOST PORT`, `... PARENT mcp HOST PORT`, or `... PARENT worker QUEUE`.

Each ends in good order on SIGTERM, and sends it to itself when the process that started it is gone.
"""

import gc
import logging.config
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# Python's default of 700 makes a page of 45,000 records cost hundreds of collections.
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
    """Stop this process soon after its parent has died, even if killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def serve(*, host: str, port: int, parent: int) -> None:
    """Answer requests until told to stop."""
    with loading():
        from django.conf import settings

        from lcmsite.server.workers import Server

        logging.config.dictConfig(settings.LOGGING)
    workers = settings.DEPLOYMENT.web_workers
    Server(_application, host=host, port=port, workers=workers, lifespan="off", parent=parent).run()


def _application() -> Callable[..., Any]:
    """The site as an ASGI application; called in each web worker."""
    end_with_parent(os.getppid())
    with loading():
        from django.urls import get_resolver

        from lcmsite.wsgi import application

        # Loaded with the first request otherwise.
        assert get_resolver().url_patterns

        # Imports models, for which Django must be set up.
        from lcmsite.server.front import Front
    return Front(application)


def serve_agents(*, host: str, port: int, parent: int) -> None:
    """Answer the calls of agents, over MCP, until told to stop."""
    with loading():
        from django.conf import settings

        from lcmsite.server.workers import Server

        logging.config.dictConfig(settings.LOGGING)
    Server(_agents_application, host=host, port=port, workers=1, lifespan="on", parent=parent).run()


def _agents_application() -> Callable[..., Any]:
    """The ASGI application; called in the one process that answers."""
    end_with_parent(os.getppid())
    with loading():
        import django

        django.setup()
        # Imports models, for which Django must be set up.
        from lcmsite.mcp.http_app import application
    return application()


def work(*, queue: str) -> None:
    """Run the tasks of one queue; at a stop, finish the current one."""
    with loading():
        import django
        from django.core.management import call_command

        django.setup()
    call_command("djangohuey", queue=queue)


def main(parent: str, kind: str, *arguments: str) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    match kind, arguments:
        case "web", (host, port):
            serve(host=host, port=int(port), parent=int(parent))
        case "mcp", (host, port):
            serve_agents(host=host, port=int(port), parent=int(parent))
        case "worker", (queue,):
            end_with_parent(int(parent))
            work(queue=queue)
        case _:
            sys.exit(f"{kind} with {len(arguments)} arguments is no process of LCM's.")


if __name__ == "__main__":
    main(*sys.argv[1:])
