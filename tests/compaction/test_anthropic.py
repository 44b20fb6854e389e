from __future__ import annotations

import json

import pytest

from compaction.llm import anthropic_protocol
from compaction.llm.failures import failure_of
from compaction.llm.types import (
    BadAnswer,
    ContextLength,
    Denied,
    Endpoint,
    Prompt,
    Protocol,
    RateLimited,
    Refused,
    Unreachable,
)

PROMPT = Prompt(system="Be brief.", user="What was said?")


def an_endpoint(base_url: str = "https://api.anthropic.com", **options) -> Endpoint:
    return Endpoint(name="a", protocol=Protocol.ANTHROPIC, base_url=base_url, model="big", **options)


def message(*blocks: dict, **fields) -> bytes:
    return json.dumps({"type": "message", "content": list(blocks), **fields}).encode()


def text(said: str) -> dict:
    return {"type": "text", "text": said}


def test_a_prompt_becomes_a_system_text_and_a_user_message():
    request = anthropic_protocol.request_of(an_endpoint(key="sk-1", max_output_tokens=800), PROMPT)

    assert request.headers["x-api-key"] == "sk-1"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert json.loads(request.body) == {
        "model": "big",
        "max_tokens": 800,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "What was said?"}],
    }


@pytest.mark.parametrize("base_url", ["http://h", "http://h/", "http://h/v1", "http://h/v1/", "http://h/v1/messages"])
def test_the_address_may_be_written_as_people_write_it(base_url):
    assert anthropic_protocol.request_of(an_endpoint(base_url), PROMPT).url == "http://h/v1/messages"


def test_only_the_text_of_an_answer_counts_not_the_thinking():
    body = message(
        {"type": "thinking", "thinking": "The port?"},
        {"type": "redacted_thinking", "data": "x"},
        text("The port "),
        text("was 5433."),
        stop_reason="end_turn",
        usage={"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7},
    )

    reply = anthropic_protocol.reply_of(an_endpoint(), body)

    assert reply.text == "The port was 5433."
    assert (reply.tokens_in, reply.tokens_out) == (100, 7)


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "tool_use", "pause_turn"])
def test_an_answer_that_does_not_end_by_itself_is_a_bad_one(stop):
    with pytest.raises(BadAnswer):
        anthropic_protocol.reply_of(an_endpoint(), message(text("The port"), stop_reason=stop))


def test_an_answer_without_text_is_a_bad_one():
    with pytest.raises(BadAnswer):
        anthropic_protocol.reply_of(an_endpoint(), message({"type": "thinking", "thinking": "Hmm."}))


def test_a_prompt_that_leaves_no_room_is_too_long():
    with pytest.raises(ContextLength):
        anthropic_protocol.reply_of(an_endpoint(), message(text("The"), stop_reason="model_context_window_exceeded"))


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, "prompt is too long: 212345 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000"),
        (413, "Request exceeds the maximum size"),
        (400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens."),
        (400, "the request exceeds the available context size, try increasing it"),
        (400, "Please reduce the length of the messages or completion."),
        (400, "Input is too long for requested model."),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
        (422, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length"),
        (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000."),
    ],
)
def test_a_prompt_that_is_too_long_is_known_in_the_words_of_many_servers(status, error):
    body = json.dumps({"error": {"message": error}}).encode()

    assert isinstance(failure_of(status=status, body=body), ContextLength)


@pytest.mark.parametrize(
    ("status", "error", "failure"),
    [
        (400, "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens", Refused),
        (401, "invalid x-api-key", Denied),
        (404, "model: big", Denied),
        (429, "This request would exceed your organization's rate limit of 50 requests per minute", RateLimited),
        (529, "Overloaded", Unreachable),
        (500, "The prompt is too long, said a proxy that failed", Unreachable),
        (302, "", Denied),
    ],
)
def test_other_errors_are_not_taken_for_it(status, error, failure):
    body = json.dumps({"error": {"message": error}}).encode()

    assert type(failure_of(status=status, body=body)) is failure
