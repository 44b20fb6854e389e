"""Serves `bare_view` as our site is served. `python -m tests.benchmarks.bare PORT`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def application(target: str) -> Callable[..., Any]:
    """The WSGI application; called in each web worker."""
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application

    django.setup()
    settings.ROOT_URLCONF = "tests.benchmarks.bare_view"
    # It says how long an answer is, without which the answer comes in chunks.
    settings.MIDDLEWARE = ["django.middleware.common.CommonMiddleware"]
    return get_wsgi_application()


def main(port: str) -> None:
    from granian.constants import Interfaces
    from granian.log import LogLevels
    from granian.server import Server

    from lcmsite.settings import DEPLOYMENT

    Server(
        __name__,
        port=int(port),
        interface=Interfaces.WSGI,
        workers=DEPLOYMENT.web_workers,
        blocking_threads=DEPLOYMENT.web_threads,
        log_level=LogLevels.warning,
    ).serve(target_loader=application)


if __name__ == "__main__":
    main(*sys.argv[1:])
