"""Each level has its temperature, and a model that refuses one is called without, as long as it is that model."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.llm.client import ModelClient
from compaction.llm.endpoints import ModelEndpoints
from compaction.llm.guards import guarded_client
from compaction.llm.types import Misconfigured, Protocol, Refused
from compaction.models import ModelEndpoint
from compaction.summarizing.summarizer import SummaryRequest
from compaction.summarizing.summarizer_chain import escalation_of
from conversations.content.tokens import estimate
from conversations.types import Level
from tests.compaction.model_settings import models
from tests.compaction.summarizing import said
from tests.compaction.vendor import PROMPT, Vendor, chats, refuses_temperature, replying, saying
from tests.lcmsite.callers import lcm

WARM = replace(PROMPT, temperature=0.2)


def sent_to(vendor: Vendor) -> list[float | None]:
    return [asked.body.get("temperature") for asked in vendor.requests]


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("protocol", "setting", "sent"),
    [
        (Protocol.CHAT, None, [0.2, 0.1]),
        (Protocol.ANTHROPIC, "0.7, 0", [0.7, 0]),
        (Protocol.CHAT, "none", [None, None]),
        (Protocol.ANTHROPIC, "none", [None, None]),
    ],
)
def test_a_normal_and_an_aggressive_summary_have_each_its_temperature(settings, protocol, setting, sent):
    request = SummaryRequest(sources=said("The port was 5433. " * 40), target_tokens=60, count_tokens=estimate)

    with Vendor(chats, saying("The port was 5433, the only one.")) as vendor:
        given = {"url": vendor.url, "model": "small", "key": "sk-1"}
        settings.LCM = {f"{protocol}_{name}": value for name, value in given.items()}
        settings.LCM |= {"temperatures": setting} if setting else {}
        escalation = escalation_of(protocol.value)
        accepted = escalation.summarize(request)

    assert accepted.level is Level.AGGRESSIVE
    assert sent_to(vendor) == sent


@pytest.mark.parametrize("text", ["0.2", "0.2,0.1,0", "warm,cold", "0.2,-1", "0.2,2.1", "nan,0", "0.2;0.1"])
def test_what_is_not_two_temperatures_is_refused_with_the_setting(text):
    with pytest.raises(Misconfigured, match=r"LCM_TEMPERATURES: .* is not two temperatures of 0 to 2"):
        models(temperatures=text).temperature_by_level()


@pytest.mark.django_db
def test_a_refusal_is_remembered_until_the_model_changes_or_is_reset(settings):
    def sent() -> list[float | None]:
        with Vendor(refuses_temperature) as vendor:
            settings.LCM |= {"chat_url": vendor.url}
            guarded_client("chat").complete(WARM)
        return sent_to(vendor)

    settings.LCM = {"chat_model": "thinks"}
    assert [sent(), sent()] == [[0.2, None], [None]]
    assert "called without a temperature" in lcm("models").out

    settings.LCM |= {"chat_model": "thinks-2"}
    assert "called without a temperature" not in lcm("models").out
    assert [sent(), sent()] == [[0.2, None], [None]]

    record = ModelEndpoints.from_settings().reset_endpoint(name="chat")
    assert not record.refuses_temperature
    assert sent() == [0.2, None]
    assert ModelEndpoints.from_settings().list_endpoints()[0].refuses_temperature
    assert ModelEndpoint.objects.get().consecutive_failures == 0


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        # It quotes the prompt, and refuses it without a temperature, too.
        (replying(400, {"error": {"message": "Bad prompt: 'The temperature was 40 degrees.'"}}), [0.2, None]),
        (replying(422, {"detail": "temperature: extra inputs are not permitted"}), [0.2, None]),
        (replying(400, {"error": {"message": "Unsupported parameter: 'stream'"}}), [0.2]),
        (replying(403, {"error": {"message": "Your plan has no temperature."}}), [0.2]),
    ],
)
def test_only_an_answer_without_a_temperature_shows_that_it_was_what_was_refused(settings, answer, sent):
    with Vendor(answer) as vendor:
        settings.LCM = {"chat_url": vendor.url, "chat_model": "small"}
        with pytest.raises(Refused):
            guarded_client("chat").complete(WARM)

    assert sent_to(vendor) == sent
    assert ModelEndpoint.objects.get().temperature_refused_by == ""


def test_a_prompt_without_a_temperature_sends_none():
    with Vendor() as vendor:
        ModelClient(endpoint=vendor.endpoint()).complete(PROMPT)

    assert sent_to(vendor) == [None]
