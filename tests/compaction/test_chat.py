from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.llm import anthropic_protocol, chat_protocol
from compaction.llm.types import BadAnswer, ContextLength, Endpoint, ModelFailed, Prompt, Protocol, Refused

PROMPT = Prompt(system="Be brief.", user="What was said?")


def an_endpoint(base_url: str = "http://localhost:8000/v1", **options) -> Endpoint:
    return Endpoint(**{"name": "local", "protocol": Protocol.CHAT, "base_url": base_url, "model": "small", **options})


def sent(endpoint: Endpoint) -> dict:
    return json.loads(chat_protocol.request_of(endpoint, PROMPT).body)


def answered(**payload) -> bytes:
    return json.dumps(payload).encode()


def one_choice(content, **choice) -> bytes:
    return answered(choices=[{"message": {"role": "assistant", "content": content}, **choice}])


def test_a_prompt_becomes_a_system_and_a_user_message():
    request = chat_protocol.request_of(an_endpoint(key="sk-1"), PROMPT)

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
    assert chat_protocol.request_of(an_endpoint(base_url), PROMPT).url == "http://h/v1/chat/completions"


def test_a_server_without_a_key_is_sent_none():
    assert "authorization" not in chat_protocol.request_of(an_endpoint(), PROMPT).headers


@pytest.mark.parametrize("base_url", ["https://api.openai.com/v1", "https://mine.openai.azure.com/openai/v1"])
def test_the_limit_has_its_newer_name_where_the_older_one_is_refused(base_url):
    body = sent(an_endpoint(base_url, max_output_tokens=900))

    assert body["max_completion_tokens"] == 900
    assert "max_tokens" not in body


def test_further_fields_can_be_given_and_ours_taken_out():
    body = sent(an_endpoint(extra={"reasoning_effort": "low", "stream": None}))

    assert body["reasoning_effort"] == "low"
    assert "stream" not in body


def test_the_text_of_an_answer_may_come_in_parts():
    parts = [
        {"type": "reasoning", "text": "I think."},
        {"type": "text", "text": "One. "},
        {"type": "text", "text": "Two."},
        {"type": "text"},
        "three",
    ]

    assert chat_protocol.reply_of(an_endpoint(), one_choice(parts)).text == "One. Two."


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
        chat_protocol.reply_of(an_endpoint(), body)


@pytest.mark.parametrize(
    "counts", [{"prompt_tokens": "many"}, {"prompt_tokens": -1}, {"prompt_tokens": True}, [], None]
)
def test_a_cost_that_makes_no_sense_counts_as_unknown(counts):
    body = answered(choices=[{"message": {"content": "Yes."}}], usage=counts, model="a\0b")

    reply = chat_protocol.reply_of(an_endpoint(), body)

    assert (reply.tokens_in, reply.tokens_out, reply.model) == (0, 0, "small")


def test_an_error_under_status_200_is_the_error_that_it_is():
    too_long = answered(error={"code": 400, "message": "This endpoint's maximum context length is 8192 tokens."})
    no_such_model = answered(error={"code": 404, "message": "No such model."})

    with pytest.raises(ContextLength):
        chat_protocol.reply_of(an_endpoint(), too_long)
    with pytest.raises(Refused):
        chat_protocol.reply_of(an_endpoint(), no_such_model)


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
        {"model": ""},
        {"timeout_seconds": 0},
        {"protocol": "telepathy"},
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
    for protocol in (chat_protocol, anthropic_protocol):
        try:
            reply = protocol.reply_of(an_endpoint(), body)
        except ModelFailed as failed:
            assert failed.reason.value in str(failed)
        else:
            assert reply.text.strip()
