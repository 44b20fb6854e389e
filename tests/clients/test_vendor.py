"""The scripted vendor speaks as the vendors' own clients expect."""

import anthropic
import openai
import pytest

from tests.clients.vendor import Answer, Refusal, ToolCall, Vendor

# Who talks with it in the default run, uses no client of a vendor.
pytestmark = pytest.mark.thorough

SCRIPT = Answer("It is in the file.", calls=(ToolCall("read", {"path": "ä.txt"}),), thinking="Where?")
TOOL = {"type": "object", "properties": {"path": {"type": "string"}}}


@pytest.fixture
def vendor():
    with Vendor(SCRIPT) as vendor:
        yield vendor


@pytest.mark.parametrize("streamed", [True, False])
def test_the_anthropic_client_reads_the_answer(vendor, streamed):
    client = anthropic.Anthropic(base_url=vendor.url, api_key="x", max_retries=0)
    request = {
        "model": "m",
        "max_tokens": 100,
        "tools": [{"name": "read", "input_schema": TOOL}],
        "messages": [{"role": "user", "content": "Where?"}],
    }

    if streamed:
        with client.messages.stream(**request) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**request)

    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[2].input == {"path": "ä.txt"}
    assert message.content[1].text == SCRIPT.text
    assert vendor.turns[0].json["messages"] == request["messages"]


@pytest.mark.parametrize("streamed", [True, False])
def test_the_openai_client_reads_the_completion(vendor, streamed):
    client = openai.OpenAI(base_url=vendor.url + "/v1", api_key="x", max_retries=0)
    request = {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": "read", "parameters": TOOL}}],
        "messages": [{"role": "user", "content": "Where?"}],
    }

    if streamed:
        with client.chat.completions.stream(**request) as stream:
            message = stream.get_final_completion().choices[0].message
    else:
        message = client.chat.completions.create(**request).choices[0].message

    assert message.content == SCRIPT.text
    assert message.tool_calls[0].function.arguments == '{"path": "ä.txt"}'


@pytest.mark.parametrize("streamed", [True, False])
def test_the_openai_client_reads_the_response(vendor, streamed):
    client = openai.OpenAI(base_url=vendor.url + "/v1", api_key="x", max_retries=0)
    request = {
        "model": "m",
        "tools": [{"type": "function", "name": "read", "parameters": TOOL, "strict": False}],
        "input": "Where?",
    }

    if streamed:
        with client.responses.stream(**request) as stream:
            response = stream.get_final_response()
    else:
        response = client.responses.create(**request)

    assert response.output_text == SCRIPT.text
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call"]


def test_requests_without_tools_leave_the_script_alone_and_refusals_pass(vendor):
    client = anthropic.Anthropic(base_url=vendor.url, api_key="x", max_retries=0)
    request = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "A title?"}]}
    vendor.answers(Refusal(529, {"type": "error", "error": {"type": "overloaded_error", "message": "Busy"}}))

    title = client.messages.create(**request)
    with pytest.raises(anthropic.APIStatusError, match="Busy"):
        client.messages.create(**request, tools=[{"name": "read", "input_schema": TOOL}])

    assert title.content[0].text == "A title"
    assert [request.is_turn for request in vendor.requests] == [False, True]
