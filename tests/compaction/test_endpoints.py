"""What is shown of the models, how one is asked anew, and that no key shows anywhere."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from compaction.llm.endpoints import ModelEndpoints
from compaction.llm.guards import Guard, guarded_client
from compaction.llm.types import BreakerOpen, BreakerState, CallOutcome, ModelFailed, Prompt, Usage
from compaction.models import ModelEndpoint
from conversations.errors import NotFound
from lcmsite.catalogue.json_text import as_ascii_json
from tests.compaction.model_settings import KEY, Clock, models
from tests.compaction.vendor import Asked, Vendor
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db

NOTHING = Usage()
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def clock() -> Clock:
    return Clock()


def call(guard: Guard, outcome: CallOutcome, usage: Usage = NOTHING) -> None:
    guard.before_call()
    guard.after_call(outcome, usage)


def test_every_model_is_listed_whether_it_is_configured_and_asked_or_not(settings):
    settings.LCM = {"chat_url": "https://models.example:8443/team/v1", "chat_model": "small"}

    chat, anthropic = ModelEndpoints.from_settings().list_endpoints()

    assert (chat.name, chat.protocol, chat.host, chat.model) == ("chat", "chat", "models.example", "small")
    assert (chat.is_configured, anthropic.is_configured) == (True, False)
    assert chat.state is anthropic.state is BreakerState.CLOSED
    assert (chat.calls, chat.window_calls, chat.window_ends_at, chat.cost) == (0, 0, None, None)
    assert (chat.window_calls_limit, chat.window_tokens_limit) == (1000, 20_000_000)
    assert not ModelEndpoint.objects.exists()


def test_what_a_model_has_cost_and_how_it_has_answered_is_told(clock):
    policy = models(chat_prices="2.0/8.0", spend_max_calls=0, spend_window_seconds=100)
    guard = Guard(name="chat", policy=policy, now=clock)
    began = clock()
    call(guard, CallOutcome.ANSWERED, Usage(1_000_000, 250_000))
    clock.forward(10)
    call(guard, CallOutcome.RATE_LIMITED, Usage(500_000, 0))

    record = ModelEndpoints(policy=policy, now=clock).list_endpoints()[0]

    assert record.cost == 5.0
    assert (record.calls, record.failures, record.consecutive_failures) == (2, 1, 1)
    assert (record.last_failure, record.last_failure_at, record.last_success_at) == ("rate_limited", clock(), began)
    assert (record.window_calls, record.window_tokens) == (2, 1_750_000)
    assert record.window_ends_at == began + timedelta(seconds=100)
    assert (record.window_calls_limit, record.window_tokens_limit) == (None, 20_000_000)


def test_the_state_is_closed_then_open_then_probing(clock):
    policy = models(breaker_failures=1, breaker_pause_seconds=60)
    guard, service = Guard(name="anthropic", policy=policy, now=clock), ModelEndpoints(policy=policy, now=clock)
    states = []

    for happens in (
        lambda: None,
        lambda: call(guard, CallOutcome.DENIED),
        lambda: clock.forward(60),
        guard.before_call,
        lambda: guard.after_call(CallOutcome.ANSWERED, NOTHING),
    ):
        happens()
        states.append(service.list_endpoints()[1].state)

    assert states == ["closed", "open", "open", "probing", "closed"]


def test_a_model_that_is_reset_is_asked_again_at_once(clock):
    policy = models(breaker_failures=1, spend_max_tokens=10)
    guard, service = Guard(name="chat", policy=policy, now=clock), ModelEndpoints(policy=policy, now=clock)
    call(guard, CallOutcome.UNREACHABLE, Usage(50, 0))
    with pytest.raises(BreakerOpen):
        guard.before_call()
    clock.forward(1)

    record = service.reset_endpoint(name="chat")

    assert record == service.list_endpoints()[0]
    assert (record.state, record.open_until, record.consecutive_failures) == (BreakerState.CLOSED, None, 0)
    assert (record.window_calls, record.window_tokens) == (0, 0)
    assert (record.calls, record.failures, record.tokens_in, record.last_failure) == (1, 1, 50, "unreachable")
    call(guard, CallOutcome.ANSWERED)


def test_a_model_that_nobody_has_asked_can_be_reset_and_one_that_there_is_not_cannot(clock):
    service = ModelEndpoints(policy=models(), now=clock)

    assert service.reset_endpoint(name="anthropic").calls == 0
    for name in ("extractive", "nobody", "x" * 1000, "NUL \x00"):
        with pytest.raises(NotFound):
            service.reset_endpoint(name=name)


def test_the_command_line_says_it_for_people(settings):
    settings.LCM = {"chat_url": "https://models.example/v1", "chat_model": "small", "breaker_failures": 1}
    call(Guard(name="chat", policy=ModelEndpoints.from_settings().policy), CallOutcome.DENIED, Usage(7, 0))

    listed = lcm("models")
    reset = lcm("reset-model", "chat")

    assert "small" in listed.out
    assert "models.example" in listed.out
    assert "open until" in listed.out
    assert "last denied" in listed.out
    assert "1 of 1,000 calls, 7 of 20,000,000 tokens" in listed.out
    assert "not configured" in listed.out
    assert "open" not in reset.out
    assert "1 call (1 failed)" in reset.out


def repeats_the_key(asked: Asked) -> None:
    """Refuses every key, and says which it was."""
    said = {"error": {"message": f"Incorrect API key provided: {asked.headers['authorization']}"}}
    asked.send(401, json.dumps(said).encode())


def test_a_key_is_in_no_row_record_error_or_log_even_if_the_vendor_repeats_it(settings, caplog):
    caplog.set_level(logging.DEBUG)
    errors = []

    with Vendor(repeats_the_key) as vendor:
        settings.LCM = {"chat_url": vendor.url, "chat_model": "small", "chat_key": KEY, "breaker_failures": 2}
        service, client = ModelEndpoints.from_settings(), guarded_client("chat")
        for _ in range(3):
            with pytest.raises(ModelFailed) as failed:
                client.complete(Prompt(system="Be brief.", user="Say nothing."))
            errors.append(failed.value)
    with connection.cursor() as cursor:
        cursor.execute("SELECT m::text FROM model_endpoints AS m")
        [(row,)] = cursor.fetchall()
    told = [
        row,
        as_ascii_json(service.list_endpoints()),
        repr(service),
        repr(client),
        caplog.text,
        lcm("models").out,
        lcm("--json", "reset-model", "chat").out,
        *(str(error) + repr(error) for error in errors),
    ]

    assert KEY in vendor.requests[0].headers["authorization"]
    assert [str(error.reason) for error in errors] == ["denied", "denied", "breaker_open"]
    assert "denied" in row
    assert [text for text in told if KEY in text] == []


@pytest.mark.thorough
@pytest.mark.parametrize("command", ["check", "diffsettings"])
def test_no_command_that_shows_settings_shows_a_key(tmp_path, command):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("LCM_")}
    given = {"LCM_DATA_DIR": str(tmp_path), "LCM_CHAT_KEY": KEY, "LCM_ANTHROPIC_KEY": KEY, "LCM_SUMMARIZER": "chat"}

    ran = subprocess.run(
        [sys.executable, "manage.py", command],
        cwd=PROJECT,
        env=clean | given,
        capture_output=True,
        text=True,
        check=False,
    )

    assert KEY not in ran.stdout + ran.stderr
    assert "LCM_CHAT_URL" in ran.stderr or "'chat_key': '***'" in ran.stdout
