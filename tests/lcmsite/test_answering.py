"""Whole answers leave in one piece, and their connections are back in the pool before."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.signals import request_finished
from django.http import FileResponse, HttpResponse, StreamingHttpResponse

from lcmsite.answering import in_one_piece


@pytest.fixture
def finished() -> Any:
    """The requests that are over."""
    seen: list[Any] = []

    def note(**_: Any) -> None:
        seen.append(1)

    request_finished.connect(note)
    yield seen
    request_finished.disconnect(note)


def answer(response: Any) -> Any:
    return in_one_piece(lambda environ, start_response: response)({}, lambda status, headers: None)


def test_an_answer_that_is_whole_is_a_list_and_over_before_it_is_sent(finished: list[Any], committed_db: None) -> None:
    sent = answer(HttpResponse("whole"))

    assert sent == [b"whole"]
    assert len(finished) == 1


@pytest.mark.parametrize(
    "response", [StreamingHttpResponse(iter(["piece", "meal"])), FileResponse(iter([b"piece", b"meal"]))]
)
def test_an_answer_that_comes_in_pieces_is_over_when_the_last_is_sent(
    response: Any, finished: list[Any], committed_db: None
) -> None:
    sent = answer(response)

    assert b"".join(sent) == b"piecemeal"
    assert not finished
    sent.close()
    assert len(finished) == 1
