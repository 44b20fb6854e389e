"""The floor over HTTP: a bare Django view that does the same rows, served as our site is. `python -m ...bare PORT`.

No key is asked for, nothing is checked, counted or logged, and there is no middleware.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.urls import path

from conversations.types import NewMessage, NewPart


def append(request: HttpRequest, conversation_id: int) -> HttpResponse:
    """Write the messages of the body and say where they stand."""
    from django.db import connection

    from tests.benchmarks.floor import Floor, rows_of

    now = datetime.now(UTC)
    given = json.loads(request.body)["messages"]
    rows = rows_of(
        NewMessage(row["role"], parts=tuple(NewPart(**part) for part in row["parts"]), created_at=now) for row in given
    )
    connection.ensure_connection()
    floor = Floor(connection.connection)
    written = floor.append_one(conversation_id, rows[0]) if len(rows) == 1 else floor.append_many(conversation_id, rows)
    answer = HttpResponse(json.dumps({"messages": written}), content_type="application/json", status=201)
    # Said by a middleware otherwise; without it the answer comes in chunks.
    answer["Content-Length"] = len(answer.content)
    return answer


urlpatterns = [path("append/<int:conversation_id>/", append)]


def application(target: str) -> Callable[..., Any]:
    """The WSGI application; called in each web worker."""
    import django
    from django.conf import settings
    from django.core.wsgi import get_wsgi_application

    from lcmsite import settings as site

    settings.configure(
        ROOT_URLCONF=__name__,
        DATABASES=site.DATABASES,
        DATA_DIR=site.DATA_DIR,
        DEPLOYMENT=site.DEPLOYMENT,
        EMBEDDED_DATABASE=site.EMBEDDED_DATABASE,
        USE_TZ=True,
        ALLOWED_HOSTS=["*"],
    )
    django.setup()
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
