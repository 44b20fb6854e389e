"""The floor over HTTP: a bare DRF view with the site's authentication that writes the same rows.

Nothing is checked, counted or logged; the one middleware says how long an answer is.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import connection
from django.urls import path
from rest_framework.parsers import JSONParser
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from conversations.types import NewMessage, NewPart
from lcmsite.access.keys import BearerKey
from tests.benchmarks.floor import Floor, rows_of


class Append(APIView):
    """Writes the messages of the body and says where they stand."""

    authentication_classes = (BearerKey,)
    parser_classes = (JSONParser,)
    renderer_classes = (JSONRenderer,)

    def post(self, request: Request, conversation_id: int) -> Response:
        now = datetime.now(UTC)
        rows = rows_of(
            NewMessage(row["role"], parts=tuple(NewPart(**part) for part in row["parts"]), created_at=now)
            for row in request.data["messages"]
        )
        connection.ensure_connection()
        floor = Floor(connection.connection)
        if len(rows) == 1:
            written = floor.append_one(conversation_id, rows[0])
        else:
            written = floor.append_many(conversation_id, rows)
        return Response({"messages": written}, status=201)


urlpatterns = [path("append/<int:conversation_id>/", Append.as_view())]
