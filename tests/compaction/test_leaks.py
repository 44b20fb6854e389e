"""A secret of the site that a model gives back, in whatever form, is stored nowhere."""

from __future__ import annotations

import base64
import logging

import pytest

from compaction.engine import CompactionEngine
from compaction.llm.client import ModelClient
from compaction.llm.leaks import leaked_in
from compaction.llm.types import Leaked, Prompt, Protocol
from compaction.summarizing.extractive.extractive_summarizer import ExtractiveSummarizer
from conversations.models import Summary
from lcmsite.environment import Environment, secrets_in
from tests.compaction.vendor import Asked, Behaviour, Vendor, saying
from tests.factories import a_conversation
from tests.flows.vendors import asking, rows_with

KEY = "sk-live-7Hq2vXw9TzR4mNb8KcLp3YdF6gJs"
PROMPT = Prompt(system="Be brief.", user="The port was set to 5433.", envelope="summary")
SECRETS = {"LCM_CHAT_KEY": KEY}

FORMS = {
    "as it is": KEY,
    "in capitals": KEY.upper(),
    "broken into lines": f"{KEY[:11]}\n  {KEY[11:20]}\n{KEY[20:]}",
    "with blanks between": " ".join(KEY),
    "in Markdown": f"**{KEY[:9]}** `{KEY[9:]}`",
    "in hex": KEY.encode().hex(),
    "in base64": base64.b64encode(KEY.encode()).decode(),
    "in base64 behind a word": base64.b64encode(f"Bearer {KEY}".encode()).decode(),
    "in base64 amid words": base64.b64encode(f"the key {KEY} is".encode()).decode(),
    "the first two thirds": KEY[:24],
    "the last two thirds": KEY[-24:],
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_secret_is_found_in_every_form(form):
    assert leaked_in(f"The port was set to 5433. {form} was sent along.", SECRETS) == "LCM_CHAT_KEY"


def test_a_secret_with_other_signs_is_found_in_percent_form():
    assert leaked_in("It is p%40ss%2Fw%C3%B6rd.", {"LCM_DATABASE_URL": "p@ss/wörd"}) == "LCM_DATABASE_URL"


def test_what_only_looks_like_a_secret_is_none():
    for text in ("", KEY[:12], "sk-live-", "A key was sent along.", KEY[::-1]):
        assert leaked_in(text, SECRETS) is None
    assert leaked_in("lcm was started", {"LCM_DATABASE_URL": "lcm"}) is None


def test_what_the_model_was_asked_about_gives_nothing_away():
    assert leaked_in(f"The key {KEY} was revoked.", SECRETS, known=f"I pasted {KEY}, please revoke it") is None
    words = {"LCM_DATABASE_URL": "postgres"}
    assert leaked_in("postgres was upgraded", words, known="we upgraded PostgreSQL") is None
    assert leaked_in("postgres was upgraded", words, known="we upgraded it") == "LCM_DATABASE_URL"


@pytest.mark.parametrize("protocol", Protocol)
@pytest.mark.parametrize("form", ["text", "model"])
def test_an_answer_that_holds_the_key_is_a_failure_that_does_not_quote_it(caplog, protocol, form):
    caplog.set_level(logging.DEBUG)

    with Vendor(_echo(form)) as vendor:
        client = ModelClient(endpoint=vendor.endpoint(protocol, key=KEY), secrets=SECRETS)
        with pytest.raises(Leaked) as leaked:
            client.complete(PROMPT)

    assert len(vendor.requests) == 1
    assert "LCM_CHAT_KEY" in str(leaked.value) and KEY not in str(leaked.value)
    assert "model_leaked_a_secret" in caplog.text and "LCM_CHAT_KEY" in caplog.text
    assert KEY not in caplog.text


def _echo(form: str) -> Behaviour:
    """Answers with the key that it was sent: in its text, or as the name of the model."""

    def behave(asked: Asked) -> None:
        sent = {name.lower(): value for name, value in asked.headers.items()}
        key = sent.get("x-api-key") or sent["authorization"].removeprefix("Bearer ")
        if form == "model":
            asked.send(200, asked.answer("It was set to 5433.").replace(b"served-model", key.encode()))
        else:
            asked.send(200, asked.answer(f"It was set to 5433, authorized by {key}."))

    return behave


@pytest.mark.usefixtures("committed_db")
@pytest.mark.parametrize(
    ("model", "secret"),
    [
        ("chat", "LCM_DATABASE_URL"),
        ("anthropic", "LCM_CHAT_KEY"),
        pytest.param("chat", "LCM_CHAT_KEY", marks=pytest.mark.thorough),
        pytest.param("chat", "LCM_METRICS_TOKEN", marks=pytest.mark.thorough),
        pytest.param("anthropic", "LCM_METRICS_TOKEN", marks=pytest.mark.thorough),
        pytest.param("anthropic", "LCM_DATABASE_URL", marks=pytest.mark.thorough),
    ],
)
def test_no_secret_that_a_model_echoes_is_stored_or_logged(settings, caplog, capfd, model, secret):
    caplog.set_level(logging.DEBUG)
    conversation_id = a_conversation(*(f"Turn {n}: the port of staging {n}. " * 45 for n in range(24))).conversation_id
    values = {"LCM_CHAT_KEY": KEY, "LCM_METRICS_TOKEN": f"tok-{KEY}", "LCM_DATABASE_URL": f"pw-{KEY}"}
    settings.SECRETS = {name: value for name, value in values.items() if name != "LCM_CHAT_KEY"}

    def echo(asked: Asked) -> None:
        asked.send(200, asked.answer(asked.in_envelope(f"The port was set. {values[secret]} was sent along.")))

    with Vendor(echo) as vendor:
        settings.LCM = asking(vendor, model, chat_key=KEY, anthropic_key=KEY)
        result = CompactionEngine.from_settings().compact(conversation_id=conversation_id)

    made = Summary.objects.filter(depth=0)
    assert vendor.requests and made and not made.filter(is_degraded=False)
    assert {tuple(each["failures"]) for each in made.values_list("quality", flat=True)} >= {
        (f"{model} normal: leaked",)
    }
    assert rows_with(KEY) == {}
    assert KEY not in repr(result) and KEY not in caplog.text and KEY not in "".join(capfd.readouterr())


@pytest.mark.usefixtures("committed_db")
def test_the_next_summarizer_of_the_chain_is_asked_instead(settings):
    conversation_id = a_conversation(*(f"Turn {n}: the port of staging {n}. " * 45 for n in range(24))).conversation_id

    with Vendor(saying(f"The port was set. {KEY}")) as vendor:
        settings.LCM = asking(vendor, "chat,extractive", chat_key=KEY)
        CompactionEngine.from_settings().compact(conversation_id=conversation_id)

    made = Summary.objects.filter(depth=0)
    assert {(summary.level, summary.model) for summary in made} == {("normal", ExtractiveSummarizer().name)}
    assert rows_with(KEY) == {}


def test_the_secrets_of_the_site_are_tokens_keys_and_passwords_of_addresses():
    given = Environment.read(
        {
            "LCM_DATABASE_URL": "postgres://ann:hush%201@db/lcm?sslmode=require",
            "LCM_REDIS_URL": "redis://:hush-2@queue:6379/0",
            "LCM_METRICS_TOKEN": "hush-3",
            "LCM_API_KEY": "lcm_hush-4",
        }
    )

    found = secrets_in(given.deployment, secret_key="hush-5")

    assert found == {
        "LCM_SECRET_KEY": "hush-5",
        "LCM_DATABASE_URL": "hush 1",
        "LCM_REDIS_URL": "hush-2",
        "LCM_METRICS_TOKEN": "hush-3",
        "LCM_API_KEY": "lcm_hush-4",
    }
    assert "hush" not in repr(found)
