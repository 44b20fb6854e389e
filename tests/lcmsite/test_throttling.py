"""A key may make so many requests a minute, whichever process answers; each answer says how many are left."""

from __future__ import annotations

import time
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import anyio
import pytest
from django.core.cache import cache

from lcmsite.api import throttling
from lcmsite.api.throttling import TooManyRequests, spend_one
from lcmsite.mcp.calls import CallRunner
from lcmsite.mcp.http_app import RequestGuard
from lcmsite.queues import REDIS_TIMEOUT_SECONDS, with_timeouts
from tests.conversations.appending import at_once
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key
from tests.statements import counted_statements, execute

NOON = 60 * 60 * 12.0


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The clock of the limits, which a test moves; counts of the test before are forgotten."""
    now = SimpleNamespace(moment=NOON)
    monkeypatch.setattr(throttling, "time", SimpleNamespace(time=lambda: now.moment, monotonic=lambda: now.moment))
    monkeypatch.setattr(throttling, "_alone_until", 0.0)
    throttling._windows.clear()
    return now


@pytest.fixture
def limited(settings: Any) -> None:
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=3)


def is_allowed(api_key_id: int) -> bool:
    try:
        spend_one(api_key_id)
    except TooManyRequests:
        return False
    return True


@pytest.mark.django_db
def test_each_minute_allows_so_many_requests_of_each_key(limited, clock):
    first = [is_allowed(-1) for _ in range(4)]
    other = is_allowed(-2)
    clock.moment += 60
    next_minute = [is_allowed(-1) for _ in range(4)]

    assert first == next_minute == [True, True, True, False]
    assert other


@pytest.mark.parametrize("limit", [20, 200])
def test_processes_share_one_limit(limit, settings, committed_db):
    """Each thread stands for a process: it has windows of its own, and shares the cache."""
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=limit)
    cache.clear()

    def requests(_: int) -> int:
        window = throttling.Window(limit)
        return sum(window.spend("requests:7:1") for _ in range(limit))

    assert sum(at_once(requests, workers=3)) == limit


@pytest.mark.django_db
def test_most_requests_ask_no_cache(settings):
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=1000)
    spend_one(-1)

    with counted_statements() as statements:
        remaining = [spend_one(-1).remaining for _ in range(9)]

    assert statements == []
    assert remaining == list(range(998, 989, -1))


@pytest.mark.django_db
def test_requests_are_allowed_while_the_cache_takes_no_writes(limited):
    execute("SET TRANSACTION READ ONLY")

    assert is_allowed(-1)


@pytest.fixture
def counted_in_redis(redis, limited, settings):
    url, server = redis
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, redis_url=url)
    backend = "django.core.cache.backends.redis.RedisCache"
    settings.CACHES = {"default": {"BACKEND": backend, "LOCATION": [with_timeouts(url)]}}
    return server


@pytest.mark.django_db
@pytest.mark.parametrize("outage", ["kill", "suspend"])
def test_without_redis_appends_go_on_and_each_process_counts_alone(counted_in_redis, clock, outage):
    key, conversation_id = an_api_key(), a_conversation().conversation_id
    Api(key).get("conversations/")
    getattr(counted_in_redis, outage)()
    began = time.monotonic()

    sent = [
        Api(each).post(f"conversations/{conversation_id}/messages/", {"messages": [{"role": "user", "content": "hi"}]})
        for each in (key, key, an_api_key(), key)
    ]

    assert [reply.status for reply in sent] == [201, 201, 201, 429]
    # Each by itself would wait.
    assert time.monotonic() - began < 3 * REDIS_TIMEOUT_SECONDS


@pytest.mark.django_db
def test_processes_count_together_again_when_redis_is_back(counted_in_redis, clock):
    counted_in_redis.suspend()
    assert is_allowed(-1)
    counted_in_redis.resume()
    clock.moment += throttling.SECONDS_ALONE + 60

    assert is_allowed(-1)

    assert cache.get(f"requests:-1:{int(clock.moment // 60)}") == 1


@pytest.mark.django_db
def test_a_rate_limit_of_zero_turns_it_off(settings):
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=0)

    reply = Api(an_api_key()).get("conversations/")

    assert not [name for name in reply.headers if name.lower().startswith("ratelimit")]


@pytest.mark.django_db
def test_answers_say_how_much_is_left_and_a_refusal_when_to_try_again(limited):
    api = Api(an_api_key())

    replies = [api.get("conversations/") for _ in range(3)]
    of_another = Api(an_api_key()).get("conversations/987654321/")
    refused = api.get("conversations/")

    assert [reply.headers["RateLimit-Remaining"] for reply in replies] == ["2", "1", "0"]
    assert {reply.headers["RateLimit-Policy"] for reply in replies} == {"3;w=60"}
    assert (of_another.status, of_another.headers["RateLimit-Remaining"]) == (404, "2")
    assert (refused.status, refused.body["code"], refused.body["retryable"]) == (429, "rate_limited", True)
    assert (refused.headers["Retry-After"], refused.headers["RateLimit-Remaining"]) == ("60", "0")


def asked_over_mcp(key: str) -> dict[str, str]:
    """The status and headers of an agent's message."""
    events: list[Any] = []

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b""})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(event: Any) -> None:
        events.append(event)

    headers = {"host": "localhost", "authorization": f"Bearer {key}", "content-type": "application/json"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    anyio.run(RequestGuard(inner=inside, runner=CallRunner()), scope, receive, send)
    answered = {name.decode(): value.decode() for name, value in events[0]["headers"]}
    return {"status": str(events[0]["status"]), **answered}


def test_rest_and_mcp_share_the_limit_of_a_key(limited, committed_db):
    key = an_api_key()
    Api(key).get("conversations/")

    first, second, third = (asked_over_mcp(key) for _ in range(3))

    assert (first["status"], first["ratelimit-remaining"]) == ("200", "1")
    assert (second["status"], second["ratelimit-remaining"]) == ("200", "0")
    assert (third["status"], third["retry-after"], third["ratelimit-remaining"]) == ("429", "60", "0")
