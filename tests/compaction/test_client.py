from __future__ import annotations

import logging
import time
import traceback
from contextlib import nullcontext
from dataclasses import replace
from email.utils import formatdate

import pytest

from compaction.llm.client import ModelClient
from compaction.llm.types import BadAnswer, ContextLength, ModelFailed, Protocol, RateLimited, Refused, Unreachable
from compaction.summarizing.summarizer import SummaryRequest
from compaction.summarizing.summarizer_chain import LanguageModelSummarizer
from conversations.content.tokens import estimate
from tests.compaction import vendor as behaviour
from tests.compaction.summarizing import said
from tests.compaction.vendor import PROMPT, Vendor, failing, good, rate_limited, refusing, replying, saying

both_protocols = pytest.mark.parametrize("protocol", list(Protocol))


class Nap:
    """Sleeps by moving the clock, and remembers."""

    def __init__(self) -> None:
        self.taken: list[float] = []
        self.moved = 0.0

    def __call__(self, seconds: float) -> None:
        self.taken.append(seconds)
        self.moved += seconds

    def clock(self) -> float:
        return time.monotonic() + self.moved


def a_client(vendor: Vendor, nap: Nap | None = None, *, protocol: Protocol = Protocol.CHAT, **options) -> ModelClient:
    nap = nap or Nap()
    return ModelClient(endpoint=vendor.endpoint(protocol, **options), sleep=nap, clock=nap.clock)


@both_protocols
def test_the_key_is_sent_as_each_protocol_wants_it_and_nowhere_else(protocol):
    with Vendor(good) as vendor:
        a_client(vendor, protocol=protocol).complete(PROMPT)

    (asked,) = vendor.requests
    holding = {name.lower(): value for name, value in asked.headers.items() if "sk-secret-key" in value}
    wanted = {
        Protocol.CHAT: {"authorization": "Bearer sk-secret-key"},
        Protocol.ANTHROPIC: {"x-api-key": "sk-secret-key"},
    }
    assert holding == wanted[protocol]
    assert "sk-secret-key" not in asked.path
    assert "sk-secret-key" not in str(asked.body)


@pytest.mark.parametrize("status", [500, 529])
def test_a_fault_of_the_vendor_is_tried_again_with_growing_pauses(status):
    nap = Nap()
    with Vendor(failing(status), failing(status), good) as vendor:
        a_client(vendor, nap).complete(PROMPT)

    assert len(vendor.requests) == 3
    first, second = nap.taken
    assert 0.5 <= first <= 1.0 <= second <= 1.5


def test_it_gives_up_after_the_attempts_it_was_given():
    with Vendor(failing()) as vendor, pytest.raises(Unreachable) as failed:
        a_client(vendor, attempts=2).complete(PROMPT)

    assert len(vendor.requests) == 2
    assert failed.value.status == 500


def _dated(moment: float, *, retry_after: str):
    def behave(asked):
        asked.handler.date_time_string = lambda timestamp=None: formatdate(moment, usegmt=True)
        rate_limited(retry_after)(asked)

    return behave


# A vendor's clock that is an hour slow: what it means is nine seconds.
SLOW = time.time() - 3600


@pytest.mark.parametrize(
    ("refusal", "least", "most"),
    [
        (rate_limited("7"), 7.0, 8.5),
        (_dated(SLOW, retry_after=formatdate(SLOW + 9, usegmt=True)), 9.0, 10.5),
        *((rate_limited(nonsense), 0.0, 1.0) for nonsense in ("soon", "nan", "-3", "Thu, 99 Foo 2026")),
    ],
)
def test_retry_after_is_honoured_where_it_means_something(refusal, least, most):
    nap = Nap()
    with Vendor(refusal, good) as vendor:
        a_client(vendor, nap).complete(PROMPT)

    assert least <= nap.taken[0] <= most


@pytest.mark.parametrize("far", ["3600", "1e12", "31536000", "Thu, 01 Jan 2099 00:00:00 GMT"])
def test_a_wait_beyond_the_deadline_is_not_begun_and_reported_as_of_an_hour_at_most(far):
    nap = Nap()
    with Vendor(rate_limited(far), good) as vendor, pytest.raises(RateLimited) as failed:
        a_client(vendor, nap).complete(PROMPT, deadline=nap.clock() + 60)

    assert nap.taken == []
    assert failed.value.retry_after == 3600
    assert len(vendor.requests) == 1


def test_nobody_is_asked_after_the_deadline():
    nap = Nap()
    with Vendor(good) as vendor, pytest.raises(Unreachable):
        a_client(vendor, nap).complete(PROMPT, deadline=nap.clock() - 1)

    assert vendor.requests == []
    with pytest.raises(Unreachable, match="no connection"):
        a_client(vendor).complete(PROMPT)


@pytest.mark.parametrize("status", [400, 401, 408])
def test_a_refusal_is_not_tried_again(status):
    with Vendor(refusing(status), good) as vendor, pytest.raises(Refused) as failed:
        a_client(vendor).complete(PROMPT)

    assert len(vendor.requests) == 1
    assert failed.value.status == status


def test_a_redirect_is_not_followed():
    with Vendor(good) as elsewhere, Vendor(replying(307, location=f"{elsewhere.url}/chat/completions")) as vendor:
        with pytest.raises(Refused):
            a_client(vendor).complete(PROMPT)

        assert elsewhere.requests == []


def test_a_proxy_of_the_environment_is_not_asked(monkeypatch):
    with Vendor(good) as proxy, Vendor(good) as vendor:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        a_client(vendor).complete(PROMPT)

        assert proxy.requests == []
        assert len(vendor.requests) == 1


@pytest.mark.parametrize(
    "behave", [behaviour.hangs, behaviour.drips, behaviour.drips_its_head], ids=lambda behave: behave.__name__
)
def test_a_call_ends_in_time_however_slowly_the_vendor_speaks(behave):
    started = time.monotonic()
    with Vendor(behave) as vendor, pytest.raises(Unreachable) as failed:
        a_client(vendor, timeout_seconds=0.4, attempts=1).complete(PROMPT)

    assert time.monotonic() - started < 10
    # What was sent may have been read, and be on the bill.
    assert failed.value.usage.tokens_in > 10


@pytest.mark.parametrize("behave", [behaviour.resets, behaviour.breaks_off], ids=lambda behave: behave.__name__)
def test_a_broken_connection_is_tried_again(behave):
    with Vendor(behave, saying("Done.")) as vendor:
        reply = a_client(vendor).complete(PROMPT)

    assert "Done." in reply.text
    assert len(vendor.requests) == 2


@both_protocols
@pytest.mark.parametrize(
    "behave",
    [
        replying(200, b"[" * 100_000),
        replying(200, b'{"choices": "none", "content": {}}'),
        replying(200, b"\xff\xfe\x00{"),
        replying(200, b"{}", content_encoding="gzip"),
    ],
)
def test_what_is_no_answer_is_a_bad_one_and_is_not_asked_for_again(protocol, behave):
    with Vendor(behave) as vendor, pytest.raises(BadAnswer):
        a_client(vendor, protocol=protocol).complete(PROMPT)

    assert len(vendor.requests) == 1


@pytest.mark.parametrize(("fits", "calls"), [(0.8, 2), (0.6, 3), (0, 3)])
def test_a_source_that_is_too_long_shrinks_until_the_model_takes_it(fits, calls):
    sources = said(*["The port was 5433. " * 100] * 8)
    request = SummaryRequest(sources=sources, target_tokens=120, count_tokens=estimate)
    longest = int(fits * sum(len(source.text) for source in sources))

    with Vendor(behaviour.too_long_over(longest)) as vendor, nullcontext() if fits else pytest.raises(ContextLength):
        LanguageModelSummarizer(client=a_client(vendor)).summarize(request)

    lengths = [len(asked.source) for asked in vendor.requests]
    assert len(lengths) == calls
    assert lengths == sorted(set(lengths), reverse=True)


def test_every_call_is_announced_and_reported():
    calls: list[str] = []
    with Vendor(rate_limited(), failing(), saying("Done.")) as vendor:
        client = replace(
            a_client(vendor),
            before_call=lambda: calls.append("call"),
            after_call=lambda outcome, usage: calls.append(f"{outcome} {usage.tokens_out}"),
        )
        reply = client.complete(PROMPT)

    answered = f"answered {reply.usage.tokens_out}"
    assert calls == ["call", "rate_limited 0", "call", "unreachable 0", "call", answered]
    cut_off = {"choices": [{"message": {"content": "A"}, "finish_reason": "length"}], "usage": {"completion_tokens": 9}}
    with Vendor(replying(200, cut_off)) as vendor, pytest.raises(BadAnswer):
        replace(client, endpoint=a_client(vendor).endpoint).complete(PROMPT)
    assert calls[-1] == "bad_answer 9"


def test_a_cost_that_the_vendor_does_not_tell_is_estimated():
    with Vendor(replying(200, {"choices": [{"message": {"content": "word " * 40}}]})) as vendor:
        reply = a_client(vendor).complete(PROMPT)

    assert reply.model == "asked-model"
    assert reply.usage.tokens_in > 10
    assert 30 < reply.usage.tokens_out < 80


@pytest.mark.parametrize(
    "behave", [refusing(), refusing(500), behaviour.truncated_json, behaviour.resets, rate_limited(), behaviour.hangs]
)
def test_neither_key_nor_prompt_nor_answer_is_in_what_a_failure_says_or_carries(behave, caplog):
    caplog.set_level(logging.DEBUG)
    with Vendor(behave) as vendor, pytest.raises(ModelFailed) as failed:
        a_client(vendor, attempts=2, timeout_seconds=0.4).complete(PROMPT)

    told = "".join(traceback.TracebackException.from_exception(failed.value, capture_locals=True).format())
    for secret in ("sk-secret-key", "The port was", "Incorrect API key"):
        # The test's own frame knows the prompt; ours must not print it.
        assert secret not in told.replace(repr(PROMPT), "")
        assert secret not in caplog.text
        assert secret not in str(failed.value) + repr(failed.value) + repr(vendor.endpoint())
    assert failed.value.__context__ is None
