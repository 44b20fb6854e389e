"""A key may ask so often, whichever process is asked; and every answer says how much is left."""

from __future__ import annotations

import multiprocessing
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.scope import Scope
from lcmsite.access.keys import revoke
from lcmsite.api.throttling import Allowance, Ledger, TooManyRequests, spend, spend_one
from lcmsite.mcp.calls import Desk
from lcmsite.mcp.http_app import Door
from tests.factories import a_workspace
from tests.lcmsite.callers import Api, an_api_key
from tests.statements import counted_statements


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "limits")


@pytest.fixture
def limited(settings: Any) -> None:
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=60, rate_burst=3)


def passes(ledger: Ledger, key: str, now: float, *, limit: int = 60, burst: int = 3) -> bool:
    try:
        spend(key, ledger=ledger, limit=limit, burst=burst, now=now)
    except TooManyRequests:
        return False
    return True


def test_a_burst_is_let_through_and_then_so_many_a_minute(ledger):
    at_once = [passes(ledger, "key", 1000.0) for _ in range(5)]
    later = [passes(ledger, "key", 1000.0 + seconds) for seconds in (0.5, 1.0, 1.5, 2.0)]

    assert at_once == [True, True, True, False, False]
    assert later == [False, True, False, True]


def test_keys_do_not_pay_for_each_other(ledger):
    assert [passes(ledger, "one", 1000.0) for _ in range(4)] == [True, True, True, False]
    assert passes(ledger, "other", 1000.0)


def test_an_allowance_tells_what_is_left_and_when_it_is_whole_again(ledger):
    first = spend("key", ledger=ledger, limit=60, burst=3, now=1000.0)
    second = spend("key", ledger=ledger, limit=60, burst=3, now=1000.0)
    spend("key", ledger=ledger, limit=60, burst=3, now=1000.0)
    with pytest.raises(TooManyRequests) as refused:
        spend("key", ledger=ledger, limit=60, burst=3, now=1000.25)

    assert (first.remaining, first.reset) == (2, 1)
    assert (second.remaining, second.reset) == (1, 2)
    assert refused.value.allowance == Allowance(limit=60, burst=3, remaining=0, reset=3, retry_after=1)
    assert passes(ledger, "key", 1000.25 + refused.value.allowance.retry_after)


@given(
    limit=st.integers(1, 10_000),
    burst=st.integers(1, 100),
    waits=st.lists(st.floats(0, 30), min_size=1, max_size=60),
)
def test_never_more_than_the_burst_and_what_has_flowed_in_since(tmp_path_factory, limit, burst, waits):
    ledger = Ledger(tmp_path_factory.mktemp("limits") / "limits")
    now, through = 1000.0, 0

    for wait in waits:
        now += wait
        through += passes(ledger, "key", now, limit=limit, burst=burst)

    assert through <= burst + (now - 1000.0) * limit / 60 + 1e-6


def _pass_many(path: Path, through: Any) -> None:
    ledger = Ledger(path)
    for _ in range(200):
        if passes(ledger, "key", 1000.0, limit=60, burst=100):
            with through.get_lock():
                through.value += 1


def test_processes_share_one_allowance_exactly(tmp_path):
    through = multiprocessing.get_context("fork").Value("i", 0)
    processes = [
        multiprocessing.get_context("fork").Process(target=_pass_many, args=(tmp_path / "limits", through))
        for _ in range(3)
    ]

    for process in processes:
        process.start()
    for process in processes:
        process.join()

    assert through.value == 100


def test_where_places_run_out_the_key_that_rested_longest_makes_room(ledger, monkeypatch):
    monkeypatch.setattr("lcmsite.api.throttling.PLACES", 8)
    for second in range(8):
        assert passes(ledger, f"key {second}", 1000.0 + second, burst=1)

    assert passes(ledger, "one more", 1008.0, burst=1)
    assert not passes(ledger, "key 7", 1007.5, burst=1)


@pytest.mark.django_db
def test_a_rate_limit_of_zero_turns_it_off(settings):
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=0)

    reply = Api(an_api_key()).get("conversations/")

    assert spend_one("key") is None
    assert not [name for name in reply.headers if name.lower().startswith("ratelimit")]


@pytest.mark.django_db
def test_by_default_a_key_may_make_thirty_thousand_requests_a_minute():
    reply = Api(an_api_key()).get("conversations/")

    assert reply.headers["RateLimit-Limit"] == "30000"


@pytest.mark.django_db
def test_answers_say_how_much_is_left_and_a_refusal_when_to_come_back(limited):
    api = Api(an_api_key())

    replies = [api.get("conversations/") for _ in range(3)]
    also_refusals = Api(an_api_key()).get("conversations/987654321/")
    with counted_statements() as statements:
        refused = api.get("conversations/")

    assert [reply.headers["RateLimit-Remaining"] for reply in replies] == ["2", "1", "0"]
    assert {reply.headers["RateLimit-Limit"] for reply in replies} == {"3"}
    assert {reply.headers["RateLimit-Policy"] for reply in replies} == {"3;w=3"}
    assert (also_refusals.status, also_refusals.headers["RateLimit-Remaining"]) == (404, "2")
    assert (refused.status, refused.body["code"], refused.body["retryable"]) == (429, "rate_limited", True)
    assert refused.headers["Retry-After"] == "1" and refused.headers["RateLimit-Remaining"] == "0"
    assert not statements


@pytest.mark.django_db
def test_a_key_that_is_none_cannot_be_tried_without_end_either(limited):
    key = an_api_key(a_workspace())
    revoke(Scope(), key=key)

    statuses = [Api(key).get("conversations/").status for _ in range(4)]

    assert statuses == [401, 401, 401, 429]


def asked_over_mcp(key: str) -> dict[str, str]:
    """The status and headers of an agent's message, from the door alone."""
    told: list[Any] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(event: Any) -> None:
        told.append(event)

    headers = {"host": "localhost", "authorization": f"Bearer {key}", "content-type": "application/json"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    anyio.run(Door(inner=inside, desk=Desk()), scope, receive, send)
    return {"status": str(told[0]["status"]), **{name.decode(): value.decode() for name, value in told[0]["headers"]}}


def test_agents_share_the_allowance_of_their_key(limited, committed_db):
    key = an_api_key()
    Api(key).get("conversations/")

    first, second, third = (asked_over_mcp(key) for _ in range(3))

    assert (first["status"], first["ratelimit-remaining"]) == ("200", "1")
    assert (second["status"], second["ratelimit-remaining"]) == ("200", "0")
    assert (third["status"], third["retry-after"], third["ratelimit-remaining"]) == ("429", "1", "0")
