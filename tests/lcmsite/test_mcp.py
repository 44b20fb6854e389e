"""The tools of agents, by the official client, over both transports: what they say is what REST says."""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError

from conversations.models import Message
from conversations.store.read import messages_of
from lcmsite.mcp.calls import CallRunner, without_surrogates
from lcmsite.mcp.mcp_server import build_server
from lcmsite.mcp.tool_list import TOOLS
from tests.factories import a_conversation, a_store
from tests.lcmsite.agents import HELLO, READY, SETTINGS, WRITES, a_call, answer_in, post, problem_in, question, say
from tests.lcmsite.callers import Api, an_api_key, lasting

# What is another every time it is asked: a grant is given anew, and the cursor of a search tells when it began.
# The limits of a request are those of the process that is asked.
FLEETING = {"updated_at", "grant", "next_cursor", "limits"}


@pytest.fixture(scope="module")
def pier_key(pier):
    return an_api_key(pier)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_an_agent_is_told_of_tools_resources_and_a_prompt(harbour, agents, key, mode):
    async def look(client):
        prompt = await client.get_prompt("lcm_lookup", {"question": "Which port?", "conversation_id": "harbour"})
        return (
            (await client.list_tools()).tools,
            (await client.list_resource_templates()).resource_templates,
            (await client.list_resources()).resources,
            (await client.list_prompts()).prompts,
            prompt.messages[0].content.text,
        )

    tools, templates, resources, prompts, lesson = agents.do(key, look, mode=mode)

    names = {tool.name for tool in tools}
    assert names == set(TOOLS)
    assert names >= {"lcm_grep", "lcm_describe", "lcm_expand", "lcm_assemble", "lcm_append", "lcm_status", "lcm_open"}
    assert names >= {"lcm_list", "lcm_message", "lcm_flush", "lcm_boundary", "lcm_coverage"}
    assert all(0 < len(tool.description.encode()) < 2048 for tool in tools)
    assert all(tool.input_schema["type"] == "object" for tool in tools)
    assert {tool.name for tool in tools if not tool.annotations.read_only_hint} == set(WRITES)
    assert [each.uri_template for each in templates] == [
        f"lcm://{kind}/{{id}}" for kind in ("conversations", "summaries", "files")
    ]
    assert [each.name for each in resources] == ["harbour"]
    assert [each.name for each in prompts] == ["lcm_lookup"]
    assert lesson.index("lcm_grep") < lesson.index("lcm_describe") < lesson.index("lcm_expand")
    assert "Which port?" in lesson and "The conversation: harbour" in lesson


def test_every_tool_answers_as_rest_does(harbour, agents, key):
    questions = {name: question(operation, harbour) for name, operation in TOOLS.items()}
    questions["lcm_expand"] |= {"depth": -1, "include_messages": True, "token_cap": 100_000}

    async def ask_all(client):
        return {name: await client.call_tool(name, given) for name, given in questions.items()}

    answers = agents.do(key, ask_all)

    for name, given in questions.items():
        expected = Api(key).perform(TOOLS[name], given).body
        assert not answers[name].is_error, name
        assert answers[name].content[0].text.strip()
        assert lasting(answers[name].structured_content, FLEETING) == lasting(without_surrogates(expected), FLEETING)


def test_a_conversation_is_named_by_its_session_too(harbour, agents, key):
    async def ask(client):
        by_number = await client.call_tool("lcm_status", {"conversation_id": harbour["conversation_id"]})
        by_session = await client.call_tool("lcm_status", {"conversation_id": "harbour"})
        by_id = await client.call_tool("lcm_status", {"conversation_id": f"conv_{harbour['conversation_id']}"})
        return by_number, by_session, by_id, await client.call_tool("lcm_status", {"conversation_id": "session:7"})

    by_number, by_session, by_id, unknown = agents.do(key, ask)

    assert by_session.structured_content == by_number.structured_content == by_id.structured_content
    assert problem_in(unknown)["code"] == "not_found"


def test_a_number_that_is_also_a_session_is_refused_before_anything_is_written(agents, pier_key, pier):
    number = a_conversation(workspace=pier).conversation_id
    other = a_conversation(session_id=str(number), workspace=pier).conversation_id

    async def append(client):
        messages = {"messages": [{"role": "user", "content": "hello"}]}
        return [
            await client.call_tool("lcm_append", {"conversation_id": named, **messages})
            for named in (str(number), f"session:{number}")
        ]

    refused, appended = agents.do(pier_key, append)

    assert problem_in(refused)["code"] == "invalid"
    assert f"conv_{number} or session:{number}" in problem_in(refused)["detail"]
    assert appended.structured_content["conversation_id"] == other


def test_what_cannot_be_answered_is_refused_as_rest_refuses_it(harbour, agents, key):
    questions = {name: question(operation, harbour) | {"nonsense": "1"} for name, operation in TOOLS.items()}

    async def ask_all(client):
        return {name: await client.call_tool(name, given) for name, given in questions.items()}

    answers = agents.do(key, ask_all)

    for name, given in questions.items():
        expected = Api(key).perform(TOOLS[name], given)
        assert expected.status == 400
        assert problem_in(answers[name]) == expected.body


def test_what_a_model_fills_in_with_null_is_as_if_it_had_left_it_out(harbour, agents, key):
    given = {"query": "boats", "limit": 1}
    filled_in = dict.fromkeys(TOOLS["lcm_grep"].params.model_fields) | given

    async def ask(client):
        return await client.call_tool("lcm_grep", given), await client.call_tool("lcm_grep", filled_in)

    bare, full = agents.do(key, ask)

    assert bare.structured_content["items"]
    assert full.structured_content["items"] == bare.structured_content["items"]


@pytest.mark.parametrize(
    ("tool", "wrong", "status"),
    [
        ("lcm_expand", {"token_cap": -5}, 400),
        ("lcm_expand", {"cursor": "nonsense"}, 400),
        ("lcm_expand", {"summary_id": 7}, 400),
        ("lcm_describe", {"id": "sum_0000000000000000"}, 404),
        ("lcm_grep", {"query": "(", "mode": "regex"}, 400),
        ("lcm_grep", {"query": None}, 400),
        ("lcm_status", {"conversation_id": 10**30}, 404),
        ("lcm_status", {"conversation_id": "NUL \x00"}, 404),
        ("lcm_status", {"conversation_id": 1.5}, 400),
        ("lcm_append", {"messages": []}, 400),
        ("lcm_append", {"messages": "hello"}, 400),
        ("lcm_assemble", {"budget": 0}, 400),
    ],
    ids=str,
)
def test_bad_input_gets_a_problem_and_the_next_call_an_answer(harbour, http, key, tool, wrong, status):
    async def ask(client):
        given = question(TOOLS[tool], harbour)
        return await client.call_tool(tool, given | wrong), await client.call_tool(tool, given)

    refused, answered = http.do(key, ask)

    assert problem_in(refused)["status"] == status
    assert not answered.is_error


def test_there_is_no_other_tool(harbour, agents, key):
    with pytest.raises(MCPError, match="no such tool"):
        agents.call(key, "lcm_models", {})


# -- the tools of other memories ---------------------------------------------------------------------------------------

README = Path(__file__).resolve().parents[2] / "README.md"
# What else the params of the table are given; the harbour says the rest.
MORE = {"limit": 5, "token_cap": 500, "only_messages": True, "keep_ends": True, "include_messages": True}


def equivalents() -> list[tuple[str, str, list[str]]]:
    """Their tool, ours, and the params that the table names with it."""
    table = README.read_text("utf-8").partition("| there | here |")[2].partition("\n\n")[0]
    return [
        (there.strip("`| ").partition("`")[0], tool, re.findall(r"`(\w+)`", params))
        for there, here in re.findall(r"^\| (`.*?) \| (.*) \|$", table, re.M)
        for tool, params in re.findall(r"`(lcm_\w+)`( \([^)]*\))?", here)
    ]


def test_every_tool_of_other_memories_has_a_line():
    assert {there for there, _, _ in equivalents()} == {
        "engram_context_search", "engram_context_describe", "engram_context_expand",
        "aos_lcm_grep", "aos_lcm_describe", "aos_lcm_expand_query",
        "decapod lcm schema", "decapod lcm ingest", "decapod lcm summarize", "decapod map llm",
        "decapod map agentic --retain",
    }  # fmt: skip


@pytest.mark.sampled(5)
@pytest.mark.parametrize(("there", "tool", "params"), equivalents())
def test_the_equivalent_takes_its_params_and_answers(harbour, http, key, there, tool, params):
    values = {**harbour, "ids": [harbour["summary_id"]], **MORE}
    known = TOOLS[tool].params.model_fields

    answer = http.call(key, tool, question(TOOLS[tool], values) | {name: values[name] for name in params})

    assert set(params) <= set(known), f"{there} is {tool}"
    assert not answer.is_error
    # Of what the table names no params of, some answers are about something else.
    assert not params or "harbour" in json.dumps(answer.structured_content)


# -- resources and progress --------------------------------------------------------------------------------------------


def test_resources_hold_what_rest_gives(harbour, agents, key):
    async def read_all(client):
        addresses = [
            f"conversations/{harbour['conversation_id']}",
            f"summaries/{harbour['summary_id']}",
            f"files/{harbour['file_id']}",
            f"files/{harbour['picture_id']}",
        ]
        return [(await client.read_resource(f"lcm://{address}")).contents[0] for address in addresses]

    conversation, summary, text, picture = agents.do(key, read_all)

    assert json.loads(conversation.text) == Api(key).get(f"conversations/{harbour['conversation_id']}/").body
    assert json.loads(summary.text) == Api(key).get(f"items/{harbour['summary_id']}/").body
    assert (text.text, text.mime_type) == ("a,b\n1,é\n", "text/csv")
    assert base64.b64decode(picture.blob) == b"\x89PNG\xff"


def test_a_resource_is_named_by_a_session_of_any_characters(agents, pier_key, pier):
    a_conversation("x", session_id="a/b c é", workspace=pier)
    address = f"lcm://conversations/{quote('a/b c é', safe='')}"

    named = agents.do(pier_key, lambda client: client.read_resource(address)).contents[0]

    assert json.loads(named.text)["session_id"] == "a/b c é"


@pytest.mark.parametrize(
    "address", ["lcm://summaries/msg_1", "lcm://nothing/1", "http://conversations/1", "lcm://files/"]
)
def test_there_is_nothing_at_other_addresses(harbour, http, key, address):
    with pytest.raises(MCPError) as refused:
        http.do(key, lambda client: client.read_resource(address))

    assert refused.value.error.data["code"] == "not_found"


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_who_asks_to_hear_of_it_is_told_of_the_start_and_of_the_end(harbour, agents, key, mode):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    async def ask(client):
        return await client.call_tool("lcm_grep", {"query": "harbour"}, progress_callback=hear)

    answer = agents.do(key, ask, mode=mode)

    assert not answer.is_error
    assert (heard[0], heard[-1]) == ((0.0, 1.0), (1.0, 1.0))


# -- every byte --------------------------------------------------------------------------------------------------------


def test_five_megabytes_come_in_and_back(agents, pier_key, pier, settings, data_dir):
    # Where the servers of agents put so much.
    settings.MEDIA_ROOT = data_dir / "files"
    a_conversation("x", session_id="long", workspace=pier)
    content = "".join(f"line {number} of a long log\n" for number in range(220_000))[: 5 * 1024**2]
    given = {"conversation_id": "long", "messages": [{"role": "user", "content": f"{content}\x00"}]}

    answer = agents.call(pier_key, "lcm_append", given)

    message_id = answer.structured_content["messages"][0]["message_id"]
    assert a_store(pier).get_message(message_id=message_id, whole=True).content == f"{content}\x00"


HALF = 'half \ud83d and NUL \x00, "quoted" \\ud83d'


def _half_said(session_id):
    return a_call("lcm_append", {"conversation_id": session_id, "messages": [{"role": "user", "content": HALF}]})


def test_half_a_surrogate_pair_comes_back_over_http(url, pier_key, pier):
    a_conversation("x", session_id="over http", workspace=pier)

    stored = answer_in(post(url, pier_key, _half_said("over http")))
    shown = answer_in(post(url, pier_key, a_call("lcm_assemble", {"conversation_id": "over http"})))

    assert stored["result"]["isError"] is False
    _shows_half(shown["result"])


@pytest.mark.thorough
def test_half_a_surrogate_pair_comes_back_over_stdio(data_dir, pier_key, pier):
    a_conversation("x", session_id="over stdio", workspace=pier)
    lines = [HELLO, READY, _half_said("over stdio"), a_call("lcm_assemble", {"conversation_id": "over stdio"}, id=2)]

    ended = say(lines, SETTINGS | {"LCM_DATA_DIR": str(data_dir)}, pier_key)

    hello, stored, shown = (json.loads(line) for line in ended.stdout.splitlines())
    assert ended.returncode == 0
    assert stored["result"]["isError"] is False
    _shows_half(shown["result"])


def _shows_half(result):
    assert messages_of([Message.objects.latest("message_id").pk])[0].content == HALF
    assert HALF.replace("\ud83d", "\\ud83d") in result["content"][0]["text"]
    assert result["structuredContent"]["items"][-1]["text"] == HALF.replace("\ud83d", "?")


# -- under strain ----------------------------------------------------------------------------------------------------


def test_an_error_that_nobody_foresaw_keeps_its_text_to_itself(caplog):
    def broken(context):
        raise RuntimeError("the secret of the house")

    async def ask_all():
        async with Client(build_server(caller_of=broken, runner=CallRunner())) as client:
            called = await client.call_tool("lcm_grep", {"query": "x"})
            problems = []
            for ask in (client.list_resources, lambda: client.read_resource("lcm://conversations/1")):
                with pytest.raises(MCPError) as refused:
                    await ask()
                problems.append((refused.value.error.message, refused.value.error.data))
            return called, problems

    called, problems = anyio.run(ask_all)

    told = {
        "code": "internal",
        "detail": "An error of LCM; its log has the details.",
        "retryable": False,
        "status": 500,
    }
    assert problem_in(called) == told
    assert problems == [(told["detail"], told)] * 2
    assert len(caplog.records) >= 3


@pytest.mark.thorough
def test_many_at_once_are_all_answered_with_fewer_connections_than_threads(harbour, http, key):
    answers = []

    # No searches: of those, one caller may have fewer at once than are called here.
    async def ask(client):
        answers.append(await client.call_tool("lcm_status", {"conversation_id": "harbour"}))

    async def ask_all(client):
        async with anyio.create_task_group() as group:
            for _ in range(24):
                group.start_soon(ask, client)

    http.do(key, ask_all)

    assert [answer.is_error for answer in answers] == [False] * 24
