"""What agents ask with every turn takes a shorter way, on which nothing is other than on that of everything else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.conf import settings
from django.core.handlers.base import BaseHandler
from django.test import Client

from lcmsite.api.busiest import Busiest
from lcmsite.api.views import BUSIEST
from retrieval.engine import RetrievalEngine
from tests.factories import a_conversation
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.test_request_ids import Lines, lines  # noqa: F401  # a fixture

pytestmark = pytest.mark.django_db

SHORT = f"{Busiest.__module__}.{Busiest.__qualname__}"
# Of each request its own.
OWN = ("X-Request-ID", "Server-Timing")
MATCHES = "/api/v1/conversations/{}/matches/"
REQUESTS: dict[str, dict[str, Any]] = {
    "answered": {"query_params": {"query": "hello"}},
    "only asked after": {"method": "HEAD", "query_params": {"query": "hello"}},
    "everywhere": {"path": "/api/v1/matches/", "query_params": {"query": "hello"}},
    "appended to": {"method": "POST", "path": "/api/v1/conversations/{}/messages/", "data": '{"messages": []}'},
    "of nobody": {"HTTP_AUTHORIZATION": "Bearer lcm_unknown"},
    "without what is needed": {},
    "of a conversation that is not there": {"path": "/api/v1/conversations/0/context/"},
    "in a way that there is not": {"method": "DELETE"},
    "for another host": {"HTTP_HOST": "elsewhere.example"},
    "larger than allowed": {"CONTENT_LENGTH": str(10**12)},
    "of no length": {"CONTENT_LENGTH": "many"},
    "without its slash": {"path": "/api/v1/matches"},
    "of a path beside them": {"path": "/api/v1/conversations/{}/"},
    "over TLS": {"secure": True, "query_params": {"query": "hello"}},
}


@pytest.fixture(autouse=True)
def no_rate_limit(settings: Any) -> None:
    """Its headers count down, so the second of two equal requests would be answered differently."""
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=0)


def answer(*, by: list[str], key: str, conversation_id: int, override: Any, **request: Any) -> Any:
    """How the request is answered, by which middleware, without what each answer has of its own."""
    request = {"HTTP_AUTHORIZATION": f"Bearer {key}", "method": "GET", "path": MATCHES, "data": "", **request}
    path = request.pop("path").format(conversation_id)
    override.MIDDLEWARE = by
    client = Client(raise_request_exception=False)
    response = client.generic(request.pop("method"), path, content_type="application/json", **request)
    headers = [(name, "" if name in OWN else value) for name, value in response.items()]
    return response.status_code, headers, response.content


@pytest.mark.parametrize("https", [False, True], ids=["", "where TLS is asked for"])
@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_either_way_the_answer_is_the_same_and_so_is_the_line_in_the_log(request_, https, settings, lines):  # noqa: F811
    settings.SECURE_SSL_REDIRECT, settings.SECURE_HSTS_SECONDS = https, 3600 if https else 0
    by_all = [each for each in settings.MIDDLEWARE if each != SHORT]
    asked = {"key": an_api_key(), "conversation_id": a_conversation("hello").conversation_id, "override": settings}

    long, short = (answer(by=by, **asked, **request_) for by in (by_all, [SHORT, *by_all]))

    assert short == long
    said = [{**line, **dict.fromkeys(("request_id", "timestamp", "exception"), "")} for line in lines.lines]
    assert said[: len(said) // 2] == said[len(said) // 2 :]


def test_a_host_that_is_not_ours_is_refused_each_time_beside_one_that_is_known(settings):
    settings.ALLOWED_HOSTS = ["ours.example"]
    client, key = Client(), an_api_key()

    def asked(host: str) -> int:
        where = "/api/v1/matches/?query=hello"
        return client.get(where, headers={"Host": host, "Authorization": f"Bearer {key}"}).status_code

    told = [asked(host) for host in ("ours.example", "ours.example", "elsewhere.example") * 2]

    assert told == [200, 200, 400] * 2


def test_an_error_that_nobody_foresaw_is_answered_alike(settings, monkeypatch):
    monkeypatch.setattr(RetrievalEngine, "grep", lambda self, **asked: 1 / 0)
    by_all = [each for each in settings.MIDDLEWARE if each != SHORT]
    asked = {"key": an_api_key(), "conversation_id": 7, "override": settings, "query_params": {"query": "hello"}}

    long, short = (answer(by=by, **asked) for by in (by_all, [SHORT, *by_all]))

    assert short == long
    assert short[0] == 500


@pytest.mark.parametrize("path", BUSIEST)
def test_what_agents_ask_with_every_turn_takes_the_short_way(path, monkeypatch):
    assert settings.MIDDLEWARE[0] == SHORT
    monkeypatch.setattr(BaseHandler, "_get_response", lambda self, request: pytest.fail("took the long way"))

    reply = Client().get(f"/api/v1/{path.format(conversation_id=7, id='msg_7', summary_id='sum_7')}")

    assert reply.status_code == 401
