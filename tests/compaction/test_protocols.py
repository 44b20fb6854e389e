"""Requests and replies in the two protocols, and failures in the words of many servers."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.llm.protocols import failure_of, reply_of, request_of
from compaction.llm.types import (
    BadAnswer,
    ContextLength,
    Denied,
    Endpoint,
    ModelFailed,
    Prompt,
    Protocol,
    RateLimited,
    Refused,
    Unreachable,
)

PROMPT = Prompt(system="Be brief.", user="What was said?")


def an_endpoint(base_url: str = "http://localhost:8000/v1", **options) -> Endpoint:
    usual = {"name": "local", "protocol": Protocol.CHAT, "base_url": base_url, "model": "small", "key": ""}
    return Endpoint(**{**usual, "timeout_seconds": 60.0, "max_output_tokens": 4096, "attempts": 3, **options})


def sent(endpoint: Endpoint) -> dict:
    return json.loads(request_of(endpoint, PROMPT).body)


def answered(**payload) -> bytes:
    return json.dumps(payload).encode()


def one_choice(content, **choice) -> bytes:
    return answered(choices=[{"message": {"role": "assistant", "content": content}, **choice}])


def test_a_prompt_becomes_a_system_and_a_user_message():
    request = request_of(an_endpoint(key="sk-1"), PROMPT)

    assert request.url == "http://localhost:8000/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-1"
    assert json.loads(request.body) == {
        "model": "small",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What was said?"}],
        "max_tokens": 4096,
        "stream": False,
    }


@pytest.mark.parametrize(
    "base_url", ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions", "http://h/v1/chat/completions/"]
)
def test_the_address_may_be_written_as_people_write_it(base_url):
    assert request_of(an_endpoint(base_url), PROMPT).url == "http://h/v1/chat/completions"


@pytest.mark.parametrize("base_url", ["https://api.openai.com/v1", "https://mine.openai.azure.com/openai/v1"])
def test_the_limit_has_its_newer_name_where_the_older_one_is_refused(base_url):
    body = sent(an_endpoint(base_url, max_output_tokens=900))

    assert body["max_completion_tokens"] == 900
    assert "max_tokens" not in body


def test_the_text_of_an_answer_may_come_in_parts():
    parts = [
        {"type": "reasoning", "text": "I think."},
        {"type": "text", "text": "One. "},
        {"type": "text", "text": "Two."},
        {"type": "text"},
        "three",
    ]

    assert reply_of(an_endpoint(), one_choice(parts)).text == "One. Two."


@pytest.mark.parametrize(
    "body",
    [
        one_choice("Cut", finish_reason="length"),
        one_choice("Withheld", finish_reason="content_filter"),
        one_choice(None),
        one_choice(" \n"),
        answered(choices=[]),
        answered(choices=["text"]),
        answered(choices=[{"text": "an older protocol"}]),
        answered(),
        b"null",
        b"<html>It works!</html>",
    ],
)
def test_an_answer_without_a_whole_text_is_a_bad_one(body):
    with pytest.raises(BadAnswer):
        reply_of(an_endpoint(), body)


@pytest.mark.parametrize(
    "counts", [{"prompt_tokens": "many"}, {"prompt_tokens": -1}, {"prompt_tokens": True}, [], None]
)
def test_a_cost_that_makes_no_sense_counts_as_unknown(counts):
    body = answered(choices=[{"message": {"content": "Yes."}}], usage=counts, model="a\0b")

    reply = reply_of(an_endpoint(), body)

    assert (reply.usage.tokens_in, reply.usage.tokens_out, reply.model) == (0, 0, "small")


def test_an_error_under_status_200_is_the_error_that_it_is():
    too_long = answered(error={"code": 400, "message": "This endpoint's maximum context length is 8192 tokens."})
    no_such_model = answered(error={"code": 404, "message": "No such model."})

    with pytest.raises(ContextLength):
        reply_of(an_endpoint(), too_long)
    with pytest.raises(Refused):
        reply_of(an_endpoint(), no_such_model)


@pytest.mark.parametrize(
    "wrong",
    [
        {"base_url": "ftp://h/v1"},
        {"base_url": "h/v1"},
        {"base_url": "https://me:sk-1@h/v1"},
        {"base_url": "https://h/v1?key=sk-1"},
        {"key": "sk-1\r\nx-other: 1"},
        {"key": "sk-1 sk-1"},
        {"key": "sk-1ключ"},
    ],
)
def test_an_endpoint_that_could_not_be_called_is_refused_without_naming_its_key(wrong):
    with pytest.raises(ValueError) as refused:
        an_endpoint(**wrong)

    assert "sk-1" not in str(refused.value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "text", "type", "usage", "error", "code", "stop_reason", "model"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.binary(max_size=200) | json_values.map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_a_reply_or_a_named_failure(body):
    for protocol in Protocol:
        try:
            reply = reply_of(an_endpoint(protocol=protocol), body)
        except ModelFailed as failed:
            assert failed.reason.value in str(failed)
        else:
            assert reply.text.strip()


def at_anthropic(base_url: str = "https://api.anthropic.com", **options) -> Endpoint:
    return an_endpoint(base_url, protocol=Protocol.ANTHROPIC, model="big", **options)


def message(*blocks: dict, **fields) -> bytes:
    return json.dumps({"type": "message", "content": list(blocks), **fields}).encode()


def text(said: str) -> dict:
    return {"type": "text", "text": said}


def test_at_anthropic_a_prompt_becomes_a_system_text_and_a_user_message():
    request = request_of(at_anthropic(key="sk-1", max_output_tokens=800), PROMPT)

    assert request.headers["x-api-key"] == "sk-1"
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert json.loads(request.body) == {
        "model": "big",
        "max_tokens": 800,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "What was said?"}],
    }


@pytest.mark.parametrize("base_url", ["http://h", "http://h/", "http://h/v1", "http://h/v1/", "http://h/v1/messages"])
def test_the_address_of_anthropics_protocol_may_be_written_so_too(base_url):
    assert request_of(at_anthropic(base_url), PROMPT).url == "http://h/v1/messages"


def test_only_the_text_of_an_answer_counts_not_the_thinking():
    body = message(
        {"type": "thinking", "thinking": "The port?"},
        {"type": "redacted_thinking", "data": "x"},
        text("The port "),
        text("was 5433."),
        stop_reason="end_turn",
        usage={"input_tokens": 10, "cache_read_input_tokens": 90, "output_tokens": 7},
    )

    reply = reply_of(at_anthropic(), body)

    assert reply.text == "The port was 5433."
    assert (reply.usage.tokens_in, reply.usage.tokens_out) == (100, 7)


@pytest.mark.parametrize(
    ("stop", "failure"),
    [("max_tokens", BadAnswer), ("refusal", BadAnswer), ("tool_use", BadAnswer), ("pause_turn", BadAnswer)]
    + [("model_context_window_exceeded", ContextLength)],
)
def test_an_answer_that_does_not_end_by_itself_is_a_bad_one(stop, failure):
    with pytest.raises(failure):
        reply_of(at_anthropic(), message(text("The port"), stop_reason=stop))


@pytest.mark.parametrize(
    ("status", "error", "failure"),
    [
        (400, "prompt is too long: 212345 tokens > 200000 maximum", ContextLength),
        (400, "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000", ContextLength),
        (413, "Request exceeds the maximum size", ContextLength),
        (400, "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.", ContextLength),
        (400, "the request exceeds the available context size, try increasing it", ContextLength),
        (400, "Please reduce the length of the messages or completion.", ContextLength),
        (400, "Input is too long for requested model.", ContextLength),
        (400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).", ContextLength),
        (422, "Prompt contains 40000 tokens, too large for model with 32768 maximum context length", ContextLength),
        (429, "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 45000.", ContextLength),
        (400, "exceed" * 3000, Refused),
        (400, "max_tokens: 100000 > 8192, which is the maximum allowed number of output tokens", Refused),
        (401, "invalid x-api-key", Denied),
        (404, "model: big", Denied),
        (429, "This request would exceed your organization's rate limit of 50 requests per minute", RateLimited),
        (529, "Overloaded", Unreachable),
        (500, "The prompt is too long, said a proxy that failed", Unreachable),
        (302, "", Denied),
    ],
)
def test_a_prompt_that_is_too_long_is_known_in_the_words_of_many_servers_and_no_other_error(status, error, failure):
    body = json.dumps({"error": {"message": error}}).encode()

    assert type(failure_of(status=status, body=body)) is failure
