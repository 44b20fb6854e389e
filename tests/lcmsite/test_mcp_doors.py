"""Who and what is let in to the tools of agents: keys, workspaces, hosts, and what is no message at all."""

from __future__ import annotations

import json
import signal
import subprocess
from datetime import timedelta

import anyio
import pytest
from django.db import connections
from django.utils import timezone
from mcp.shared.exceptions import MCPError

from conversations.scope import Scope
from lcmsite.access import keys
from lcmsite.access.keys import SECONDS_CACHED
from lcmsite.mcp.tool_list import READING, TOOLS, tools
from lcmsite.models import ApiKey
from tests.factories import a_workspace
from tests.flows.processes import PROJECT
from tests.lcmsite.agents import (
    HELLO,
    LCM_MCP,
    MOST_BYTES,
    READY,
    SETTINGS,
    WRITES,
    a_call,
    answer_in,
    hired,
    over_http,
    own,
    post,
    problem_in,
    question,
    say,
    serving_here,
)
from tests.lcmsite.callers import an_api_key, lcm


@pytest.fixture(scope="module")
def url(harbour_of_all):
    with serving_here() as url:
        yield url


@pytest.fixture(params=["unknown", "revoked", "expired"])
def bad_key(request, harbour):
    key = an_api_key()
    rows = ApiKey.objects.filter(prefix=key[: keys.SHOWN_CHARACTERS])
    match request.param:
        case "unknown":
            return key[:-1] + ("A" if key[-1] != "A" else "B"), "unauthenticated"
        case "revoked":
            keys.revoke(Scope(), key=key)
            return key, "key_revoked"
        case _:
            rows.update(expires_at=timezone.now() - timedelta(seconds=1))
            return key, "key_expired"


def test_no_tool_answers_a_bad_key_over_http(harbour, url, bad_key):
    key, code = bad_key

    for name, operation in TOOLS.items():
        reply = post(url, key, a_call(name, question(operation, harbour)))

        assert (reply.status_code, reply.json()["code"]) == (401, code)
        assert reply.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.thorough
@pytest.mark.parametrize("bad_key", ["expired", "unknown", "revoked"], indirect=True)
def test_a_bad_key_keeps_the_server_from_starting_over_stdio(bad_key):
    key, code = bad_key

    ended = subprocess.run(LCM_MCP, env=own(SETTINGS, key), cwd=PROJECT, input=HELLO, capture_output=True, timeout=60)

    assert (ended.returncode, ended.stdout) == (5, b"")
    # One line of JSON, because SETTINGS ask for JSON logs.
    assert ended.stderr.count(b"\n") == 1
    assert json.loads(ended.stderr)["code"] == code


def test_a_key_taken_back_meanwhile_opens_nothing_any_more_over_stdio(harbour, stdio):
    key = an_api_key()

    async def ask_all(client):
        before = await client.call_tool("lcm_status", {"conversation_id": "harbour"})
        await anyio.to_thread.run_sync(_revoke, key)
        # Another process may take it for good for so long.
        await anyio.sleep(SECONDS_CACHED)
        answers = [await client.call_tool(name, question(operation, harbour)) for name, operation in TOOLS.items()]
        with pytest.raises(MCPError) as refused:
            await client.read_resource("lcm://conversations/harbour")
        return before, answers, refused.value

    before, answers, refused = stdio.do(key, ask_all)

    assert not before.is_error
    assert {problem_in(answer)["code"] for answer in answers} == {"key_revoked"}
    assert refused.error.data["code"] == "key_revoked"


def _revoke(key):
    keys.revoke(Scope(), key=key)
    connections.close_all()


def test_a_reader_may_not_write(harbour, agents):
    async def ask_all(client):
        return [await client.call_tool(name, {"nonsense": 1, "conversation_id": "none such"}) for name in WRITES]

    answers = agents.do(an_api_key(None, "read"), ask_all)

    assert {problem_in(answer)["code"] for answer in answers} == {"forbidden"}


# They are of the caller's workspace, and name nothing in it.
OF_ALL = {"lcm_open", "lcm_list", "lcm_schema"}


def test_a_stranger_is_told_what_is_said_of_things_that_there_are_not(harbour, agents):
    stranger = an_api_key(a_workspace("elsewhere"), "admin")
    asked = {name: question(operation, harbour) for name, operation in TOOLS.items() if name not in OF_ALL}
    addresses = [f"conversations/{harbour['conversation_id']}", "conversations/harbour"]
    addresses += [f"summaries/{harbour['summary_id']}", f"files/{harbour['file_id']}"]

    async def ask_all(client):
        problems = [problem_in(await client.call_tool(name, given)) for name, given in asked.items()]
        by_session = problem_in(await client.call_tool("lcm_status", {"conversation_id": "harbour"}))
        for address in addresses:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(f"lcm://{address}")
            problems.append(refused.value.error.data)
        return [*problems, by_session], (await client.list_resources()).resources

    problems, listed = agents.do(stranger, ask_all)

    assert {problem["code"] for problem in problems} == {"not_found"}
    assert all("that you may see" in problem["detail"] for problem in problems)
    assert listed == []


# -- what is no call ---------------------------------------------------------------------------------------------------


@pytest.mark.thorough
def test_lines_that_are_no_message_are_answered_and_the_next_one_is_served(harbour, data_dir):
    lines = [HELLO, READY, b"broken", b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "method": "ping"}']
    lines += [b'{"id": 8, "broken": NaN}', b'{"jsonrpc": "2.0", "id": 9, "method": "ping"}']

    ended = say(lines, SETTINGS | {"LCM_DATA_DIR": str(data_dir)}, an_api_key())

    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [answer.get("id") for answer in answers] == [0, None, 7, 8, 9]
    assert [("error" in answer) for answer in answers] == [False, True, True, True, False]
    assert ended.returncode == 0


@pytest.mark.thorough
def test_requests_with_an_unusable_id_are_refused_and_the_next_one_is_served(harbour, data_dir):
    lines = [b'{"jsonrpc": "%s", "id": %s, "method": "ping"}' % (version, id) for version in (b"2.0", b"3.0")
             for id in (b"true", b"null", b"1.5", b"{}")]  # fmt: skip
    lines = [HELLO, READY, *lines, b'{"jsonrpc": "2.0", "id": 9, "method": "ping"}']

    ended = say(lines, SETTINGS | {"LCM_DATA_DIR": str(data_dir)}, an_api_key())

    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [answer.get("id") for answer in answers] == [0, *[None] * 8, 9]
    assert all("error" in answer for answer in answers[1:-1])
    assert ended.returncode == 0


@pytest.mark.thorough
def test_ctrl_c_ends_it_at_once_and_in_silence(harbour, data_dir):
    environment = own(SETTINGS | {"LCM_DATA_DIR": str(data_dir)}, an_api_key())
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(LCM_MCP, cwd=PROJECT, env=environment, **pipes) as running:
        running.stdin.write(HELLO + b"\n")
        running.stdin.flush()
        hello = json.loads(running.stdout.readline())

        running.send_signal(signal.SIGINT)

        assert running.wait(timeout=60) == 130
        assert (running.stdout.read(), running.stderr.read()) == (b"", b"")
    assert hello["result"]["serverInfo"]["name"] == "lcm"


REFUSED = {
    "no key": (None, b"{}", {}, 401),
    "another host": ("key", b"{}", {"Host": "evil.example"}, 400),
    "a page elsewhere": ("key", b"{}", {"Origin": "https://evil.example"}, 403),
    "a page of nowhere": ("key", b"{}", {"Origin": "null"}, 403),
    "no address": ("key", b"{}", {"Origin": "http://[oops"}, 403),
    "a form": ("key", b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
    "no JSON": ("key", b"{", {}, 400),
    "said twice": ("key", b'{"id": 1, "id": 2}', {}, 400),
    "not a number": ("key", b'{"id": NaN}', {}, 400),
    "too nested": ("key", b"[" * 200_000, {}, 400),
    "too large": ("key", b" " * (MOST_BYTES + 1), {}, 413),
}


@pytest.mark.parametrize(("key", "body", "headers", "status"), REFUSED.values(), ids=REFUSED.keys())
def test_what_rest_would_not_let_in_is_not_let_in(harbour, url, key, body, headers, status):
    reply = post(url, an_api_key() if key else None, body, **headers)

    assert (reply.status_code, reply.json()["status"]) == (status, status)


@pytest.mark.parametrize(
    "body", [b"[]", b"7", b"{}", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', b'"\\ud800"']
)
def test_json_that_is_no_message_is_refused_without_a_word_of_ours(harbour, url, body):
    reply = post(url, an_api_key(), body)

    assert reply.status_code < 500
    assert "error" in reply.text
    assert "lcmsite" not in reply.text


def test_a_page_of_ours_may_ask(harbour, url):
    reply = post(
        url, an_api_key(), a_call("lcm_status", {"conversation_id": "harbour"}), Origin="http://localhost:3000"
    )

    assert answer_in(reply)["result"]["isError"] is False


def test_an_address_offers_only_the_tools_that_it_names(harbour, url):
    async def look(client):
        return [tool.name for tool in (await client.list_tools()).tools]

    with hired(over_http(f"{url}?tools=reading,lcm_append")) as agents:
        offered = agents.do(an_api_key(), look)
        with pytest.raises(MCPError, match="There is no such tool"):
            agents.call(an_api_key(), "lcm_status", {"conversation_id": "harbour"})

    assert sorted(offered) == sorted([*READING, "lcm_append"])


def test_a_name_that_is_of_no_tool_is_refused_with_those_there_are(harbour, url):
    reply = post(f"{url}?tools=lcm_grep,lcm_gerp", an_api_key(), a_call("lcm_grep", {"query": "x"}))

    assert reply.status_code == 400
    assert "'lcm_gerp'; the tools are lcm_schema, " in reply.json()["detail"]
    # Over stdio, before it begins.
    assert lcm("mcp", "--tools", "lcm_gerp").exit_code == 2


def test_schemas_tell_a_model_nothing_that_is_self_evident():
    texts = [json.dumps(tool.input_schema) for tool in tools()]

    assert not any(each in text for text in texts for each in ('"null"', "u0000", str(2**63 - 1)))
    # All of them, and those that are enough to look something up: a context pays for each character.
    assert sum(map(len, texts)) < 32_000 and sum(len(texts[list(TOOLS).index(name)]) for name in READING) < 7_000
