"""Whole answers leave in one piece, their connections are back in the pool before; else all is as Django has it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.test import RequestFactory

from lcmsite.answering import Site, put_headers
from retrieval.assembler import ContextAssembler
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.test_request_ids import lines  # noqa: F401  # a fixture

MATCHES, FAILING = "/api/v1/matches/?query=hello", "/api/v1/conversations/7/context/"
# Of each answer its own.
OWN = ("X-Request-ID", "Server-Timing", "Expires")


@pytest.fixture(autouse=True)
def no_rate_limit(settings: Any) -> None:
    """Its headers count down, so the second of two equal requests would be answered differently."""
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=0)


@pytest.fixture
def finished() -> Any:
    """The requests that are over."""
    seen: list[Any] = []

    def note(**_: Any) -> None:
        seen.append(1)

    request_finished.connect(note)
    yield seen
    request_finished.disconnect(note)


def answer(response: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    site = Site()
    monkeypatch.setattr(site, "_middleware_chain", lambda request: response)
    return site(RequestFactory().get("/").environ, lambda status, headers: None)


def test_an_answer_that_is_whole_is_a_list_and_over_before_it_is_sent(finished, monkeypatch, committed_db):
    sent = answer(HttpResponse("whole"), monkeypatch)

    assert sent == [b"whole"]
    assert len(finished) == 1


@pytest.mark.parametrize(
    "response", [StreamingHttpResponse(iter(["piece", "meal"])), FileResponse(iter([b"piece", b"meal"]))]
)
def test_an_answer_that_comes_in_pieces_is_over_when_the_last_is_sent(response, finished, monkeypatch, committed_db):
    sent = answer(response, monkeypatch)

    assert b"".join(sent) == b"piecemeal"
    assert not finished
    sent.close()
    assert len(finished) == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("path", [MATCHES, FAILING, "/api/v1/nothing/", "/login/", "/static/lcm/icon.svg"])
def test_whatever_is_asked_status_headers_and_log_are_those_of_django(path, method, committed_db, lines, monkeypatch):  # noqa: F811
    monkeypatch.setattr(ContextAssembler, "assemble", lambda self, **asked: 1 / 0)
    key = an_api_key()

    def said(site: WSGIHandler) -> Any:
        told: list[Any] = []
        environ = RequestFactory().generic(method, path, headers={"Authorization": f"Bearer {key}"}).environ
        sent = site(environ, lambda status, headers: told.append((status, headers)))
        body = b"".join(sent)
        getattr(sent, "close", lambda: None)()
        [(status, headers)] = told
        values = {name: (value[:11] if name == "Set-Cookie" else value) for name, value in headers if name not in OWN}
        return status, [name for name, _ in headers], values, len(body)

    ours, theirs = said(Site()), said(WSGIHandler())

    assert ours == theirs
    logged = [{**line, "request_id": "", "timestamp": "", "exception": ""} for line in lines.lines]
    assert logged[: len(logged) // 2] == logged[len(logged) // 2 :]


def test_a_header_of_ours_takes_the_place_of_one_of_that_name():
    response = HttpResponse(headers={"x-request-id": "of somebody else"})

    put_headers(response, ("X-Request-ID", "ours"))

    assert response.headers["x-request-id"] == "ours"
    assert [name for name, _ in response.items() if name.lower() == "x-request-id"] == ["X-Request-ID"]
