"""What one process of `lcm up` does: `python -m lcmsite.processes PARENT web HOST PORT`, `... PARENT mcp HOST PORT`, or
`... PARENT worker QUEUE`.

Each ends in good order on SIGTERM, and sends it to itself when the process that started it is gone.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from lcmsite.loading import loading

SECONDS_TO_FINISH = 10


def end_with_parent(parent: int) -> None:
    """Stop this process soon after its parent has died, even by a signal that allows no farewell."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, daemon=True).start()


def heeding_signals() -> None:
    """Have the workers that a server forks end when told to while they load: its own handlers would pass over it.

    Python forgets what arrives while it forks, so such a signal waits until the worker has done with that. When it has
    loaded, the server's library gives each worker handlers of its own.
    """
    ends = (signal.SIGTERM, signal.SIGINT)

    def wait() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)

    def go_on() -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ends)

    def forget_handlers() -> None:
        for each in ends:
            signal.signal(each, signal.SIG_DFL)
        go_on()

    os.register_at_fork(before=wait, after_in_parent=go_on, after_in_child=forget_handlers)


def serve(*, host: str, port: int) -> None:
    """Answer requests until told to stop."""
    with loading():
        from django.conf import settings
        from granian.constants import Interfaces
        from granian.log import LogLevels
        from granian.server import Server

        from lcmsite.adapters.concurrency import gate

        deployment = settings.DEPLOYMENT
    heeding_signals()
    Server(
        "lcmsite.wsgi:application",
        address=host,
        port=port,
        interface=Interfaces.WSGI,
        workers=deployment.web_workers,
        blocking_threads=gate().limits.threads,
        log_level=LogLevels.warning,
        log_dictconfig=settings.LOGGING,
        respawn_failed_workers=True,
        workers_kill_timeout=SECONDS_TO_FINISH,
    ).serve(target_loader=_application)


def _application(target: str) -> Callable[..., Any]:
    """The WSGI application; called in each web worker."""
    end_with_parent(os.getppid())
    with loading():
        from django.urls import get_resolver

        from lcmsite.wsgi import application

        # Loaded with the first request otherwise.
        assert get_resolver().url_patterns
    return application


def serve_agents(*, host: str, port: int) -> None:
    """Answer the calls of agents, over MCP, until told to stop."""
    with loading():
        from django.conf import settings
        from granian.constants import HTTPModes, Interfaces
        from granian.log import LogLevels
        from granian.server import Server

    heeding_signals()
    Server(
        "lcmsite.asgi:application",
        address=host,
        port=port,
        interface=Interfaces.ASGI,
        http=HTTPModes.http1,
        websockets=False,
        log_level=LogLevels.warning,
        log_dictconfig=settings.LOGGING,
        respawn_failed_workers=True,
        workers_kill_timeout=SECONDS_TO_FINISH,
    ).serve(target_loader=_agents_application)


def _agents_application(target: str) -> Callable[..., Any]:
    """The ASGI application; called in the one process that answers."""
    end_with_parent(os.getppid())
    with loading():
        from lcmsite.asgi import application
    return application


def work(*, queue: str) -> None:
    """Work on the tasks of one queue until told to stop; then finish the task at hand."""
    with loading():
        import django
        from django.core.management import call_command

        django.setup()
    call_command("djangohuey", queue=queue)


def main(parent: str, kind: str, *arguments: str) -> None:
    end_with_parent(int(parent))
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "lcmsite.settings")
    match kind, arguments:
        case "web", (host, port):
            serve(host=host, port=int(port))
        case "mcp", (host, port):
            serve_agents(host=host, port=int(port))
        case "worker", (queue,):
            work(queue=queue)
        case _:
            sys.exit(f"{kind} with {len(arguments)} arguments is no process of LCM's.")


if __name__ == "__main__":
    main(*sys.argv[1:])
