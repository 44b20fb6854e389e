"""Which session, upstream and mode a request has, and what is no part of a conversation."""

import json

import pytest

from conversations.errors import Invalid
from lcmsite.environment import Environment
from lcmsite.gateway.recording.session_finding import hints_of, session_of
from lcmsite.gateway.recording.side_requests import Side, side_of
from lcmsite.gateway.surfaces import Surface, Task, read_request
from lcmsite.gateway.upstreams import Mode, Routes, Rule, parse_rules, parse_upstreams

ID = "0b3f2c1d-aaaa"
THREAD = "019a2b3c-4d5e-7f60-8a9b-0c1d2e3f4a5b"
# The surest first: each is taken before those that follow it.
NAMED = [
    ("x-lcm-session-id", {"x-lcm-session-id": "mine"}, {}, "mine"),
    ("x-litellm-trace-id", {"x-litellm-trace-id": f"{ID}-1"}, {}, f"gateway/{ID}-1"),
    ("x-litellm-session-id", {"x-litellm-session-id": f"{ID}-2"}, {}, f"gateway/{ID}-2"),
    ("x-claude-code-session-id", {"x-claude-code-session-id": f"{ID}-3"}, {}, f"gateway/{ID}-3"),
    ("session-id", {"session-id": f"{ID}-4", "user-agent": "codex_cli_rs/0.1"}, {}, f"gateway/{ID}-4"),
    ("x-session-id", {"x-session-id": f"{ID}-5"}, {}, f"gateway/{ID}-5"),
    ("metadata.user_id", {}, {"metadata": {"user_id": json.dumps({"session_id": f"{ID}-6"})}}, f"gateway/{ID}-6"),
    ("litellm_session_id", {}, {"litellm_session_id": f"{ID}-7"}, f"gateway/{ID}-7"),
    ("baggage", {"baggage": f"a=b, session.id={ID}-8;p=1"}, {}, f"gateway/{ID}-8"),
    ("prompt_cache_key", {}, {"prompt_cache_key": THREAD}, f"gateway/{THREAD}"),
]


@pytest.mark.parametrize("first", range(len(NAMED)), ids=[source for source, *_ in NAMED])
def test_the_surest_name_of_a_session_is_taken(first):
    headers = {name: value for _, given, _, _ in NAMED[first:] for name, value in given.items()}
    body = {name: value for _, _, given, _ in NAMED[first:] for name, value in given.items()}

    found = session_of(hints_of(headers | {"authorization": "Bearer x", "x-lcm-api-key": "lcm_x"}), body)

    assert (found.source, found.name) == (NAMED[first][0], NAMED[first][3])


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({}, {}),
        ({"x-session-id": "short"}, {}),
        ({"x-session-id": "with spaces in it"}, {}),
        # In a request that was spooled before such names were refused.
        ({"x-lcm-session-id": "x" * 501}, {}),
        # Of Codex alone.
        ({"session-id": ID}, {}),
        ({"baggage": "session.id"}, {"metadata": {"user_id": "{", "session_id": 7}, "prompt_cache_key": []}),
        # Users may share it, as a name of their prompt.
        ({}, {"prompt_cache_key": "my-app-v1-prompt"}),
        ({"x-request-id": ID}, {"user": "somebody-1234", "metadata": "x"}),
    ],
)
def test_what_names_no_session_is_none(headers, body):
    assert session_of(hints_of(headers), body) is None


def test_credentials_are_no_hints():
    secret = (
        "authorization", "x-api-key", "x-lcm-api-key", "cookie", "x-litellm-api-key", "x-openai-api-key",
        "x-session-token", "x-claude-code-secret", "x-codex-token", "x-opencode-auth", "x-lcm-new-secret",
    )  # fmt: skip
    given = {"x-session-id": ID, **dict.fromkeys(secret, "x")}

    assert hints_of(given) == {"x-session-id": ID}


@pytest.mark.parametrize(
    ("headers", "name", "parent"),
    [
        ({"x-claude-code-agent-id": "agent-0001"}, f"gateway/{ID}/agent-0001", f"gateway/{ID}"),
        (
            {"x-claude-code-agent-id": "agent-0002", "x-claude-code-parent-agent-id": "agent-0001"},
            f"gateway/{ID}/agent-0002",
            f"gateway/{ID}/agent-0001",
        ),
        ({"x-parent-session-id": "ses_00000001"}, f"gateway/{ID}", "gateway/ses_00000001"),
        ({"x-lcm-session-id": "team/a/b", "x-claude-code-agent-id": "agent-0001"}, "team/a/b/agent-0001", "team/a/b"),
        # A session's name may have 500 characters.
        ({"x-lcm-session-id": "x" * 490, "x-claude-code-agent-id": "agent-0001"}, "gateway/agent-0001", "x" * 490),
    ],
)
def test_subagents_have_a_session_of_their_own_below_another(headers, name, parent):
    found = session_of({"x-claude-code-session-id": ID, **headers}, {})

    assert (found.name, found.parent) == (name, parent)


@pytest.mark.parametrize("agent", [{"user-agent": "codex_cli_rs/0.169.0"}, {"x-codex-window-id": f"{ID}:0"}])
def test_a_subagent_of_codex_has_the_session_of_its_thread(agent):
    body = {"prompt_cache_key": ID}
    root = {"session-id": ID, "thread-id": ID, **agent}
    below = {"session-id": ID, "thread-id": "0b3f2c1d-bbbb", "x-codex-parent-thread-id": ID, **agent}

    found = [session_of(hints_of(headers), body) for headers in (root, below)]

    assert [(each.name, each.parent) for each in found] == [
        (f"gateway/{ID}", None),
        ("gateway/0b3f2c1d-bbbb", f"gateway/{ID}"),
    ]


def a_request(*, tools=(), system="", text="Hello", **more):
    body = {"messages": [{"role": "user", "content": text}], "tools": list(tools), "system": system, **more}
    return read_request(Surface.MESSAGES, body)


def with_history(*more, **given):
    turn = [{"role": "user", "content": "Write a title"}, {"role": "assistant", "content": "The title"}]
    rows = [*turn, *(more or [{"role": "user", "content": "And?"}])]
    return read_request(Surface.MESSAGES, {"messages": rows, **given})


def a_result(text):
    return read_request(Surface.CHAT, {"messages": [{"role": "tool", "tool_call_id": "c", "content": text}]})


TOOLS = ({"name": "ls"},)
REMINDER = "<system-reminder>You may generate a title.</system-reminder>"


@pytest.mark.parametrize(
    ("request_", "headers", "side"),
    [
        (a_request(), {}, None),
        (a_request(tools=TOOLS, text="Generate a title for my book"), {}, None),
        (a_request(text=f"{REMINDER}Hello"), {}, None),
        (a_request(text="Write a short story and give it a title."), {}, None),
        (a_request(text="Please suggest next steps"), {}, None),
        (a_request(tools=TOOLS, text="Suggest the next step"), {}, None),
        (with_history(system="You write blog posts, each with a title."), {}, None),
        (with_history({"role": "user", "content": "Summarize this conversation in one page"}), {}, None),
        (a_result("[SUGGESTION MODE: as the host's own code has it]"), {}, None),
        (a_result("Your task is to create a detailed summary of the code"), {}, None),
        (a_request(text="### Task:\nGenerate a concise, 3-5 word title with an emoji"), {}, Side.TITLE),
        (a_request(text="Please write a 5-10 word title for the following conversation:"), {}, Side.TITLE),
        (with_history({"role": "user", "content": "Generate a concise 3-7 word title for this"}), {}, Side.TITLE),
        (a_request(system="You are a title generator."), {}, Side.TITLE),
        (a_request(system="Analyze if this message indicates a new conversation topic."), {}, Side.TITLE),
        (a_request(max_tokens=1), {}, Side.PROBE),
        (a_request(tools=TOOLS, text="[SUGGESTION MODE: Suggest what the user might type]"), {}, Side.SUGGESTION),
        (
            a_request(tools=TOOLS, text="Your task is to create a detailed summary of the conversation so far"),
            {},
            Side.COMPACTION,
        ),
        (a_request(tools=TOOLS), {"x-codex-turn-metadata": '{"request_kind": "compaction"}'}, Side.COMPACTION),
        (a_request(tools=TOOLS), {"x-openai-subagent": "compact"}, Side.COMPACTION),
        (a_request(tools=TOOLS), {"x-codex-turn-metadata": "no JSON"}, None),
        (a_request(tools=TOOLS), {"x-lcm-side": "1"}, Side.OTHER),
    ],
)
def test_requests_of_the_host_are_recognized(request_, headers, side):
    assert side_of(request_, Task.GENERATE, headers) == side


UPSTREAMS = {"anthropic": "https://api.anthropic.com", "openai": "https://api.openai.com/v1", "local": "http://h:1/x"}
ROUTES = Routes(
    UPSTREAMS, parse_rules("record,anthropic=assemble,local=assemble+lookups,chat=off,key:7=dry-run+fail_closed")
)


@pytest.mark.parametrize(
    ("method", "path", "headers", "url"),
    [
        ("POST", "/v1/messages", {}, "https://api.anthropic.com/v1/messages"),
        ("POST", "/v1/responses", {}, "https://api.openai.com/v1/responses"),
        ("POST", "/gw/local/v1/messages", {}, "http://h:1/x/v1/messages"),
        ("GET", "/k/lcm_x/gw/openai/v1/models", {}, "https://api.openai.com/v1/models"),
        ("GET", "/v1/models", {"anthropic-version": "2023-06-01"}, "https://api.anthropic.com/v1/models"),
        ("HEAD", "/", {"user-agent": "Claude-Code"}, "https://api.anthropic.com/"),
        ("GET", "/v1/models", {}, "https://api.openai.com/v1/models"),
        ("OPTIONS", "*", {}, None),
    ],
)
def test_a_path_has_its_upstream(method, path, headers, url):
    route = ROUTES.route(method, path, headers)

    assert (route and route.url) == url


@pytest.mark.parametrize(
    ("path", "key", "headers", "rule"),
    [
        ("/v1/messages", 1, {}, Rule(Mode.ASSEMBLE)),
        ("/v1/messages", 7, {}, Rule(Mode.DRY_RUN, fail_closed=True)),
        ("/v1/messages", 7, {"x-lcm-fail-closed": "false"}, Rule(Mode.DRY_RUN)),
        ("/v1/messages", 1, {"x-lcm-mode": "record"}, Rule(Mode.RECORD)),
        ("/v1/messages", 1, {"x-lcm-lookups": "true"}, Rule(Mode.ASSEMBLE, has_lookups=True)),
        ("/v1/messages", 1, {"x-lcm-lookups": "false"}, Rule(Mode.ASSEMBLE)),
        ("/v1/messages", 7, {"x-lcm-store": "false"}, Rule(Mode.OFF)),
        ("/v1/chat/completions", 1, {}, Rule(Mode.OFF)),
        ("/v1/responses", 1, {}, Rule(Mode.RECORD)),
        ("/gw/local/v1/messages", 1, {}, Rule(Mode.ASSEMBLE, has_lookups=True)),
    ],
)
def test_a_request_has_its_mode(path, key, headers, rule):
    route = ROUTES.route("POST", path, headers)

    assert ROUTES.rule(route, api_key_id=key, headers=headers) == rule


def test_a_mode_that_does_not_exist_is_refused_by_name():
    route = ROUTES.route("POST", "/v1/messages", {})

    with pytest.raises(Invalid, match="no mode 'assmble'; use one of off, record, dry-run, assemble"):
        ROUTES.rule(route, api_key_id=1, headers={"x-lcm-mode": "assmble"})


@pytest.mark.parametrize(
    ("rules", "headers", "rule"),
    [
        ("record,chat=assemble", {}, Rule(Mode.ASSEMBLE)),
        ("record,key:7=assemble", {}, Rule(Mode.RECORD)),
        ("record,key:7=record+fail_closed", {}, Rule(Mode.RECORD, fail_closed=True)),
        ("record,key:7=record+fail_closed,key:8=off", {}, Rule(Mode.RECORD, fail_closed=True)),
        ("record,key:8=off", {}, Rule(Mode.OFF)),
        ("record,key:8=off", {"x-lcm-mode": "record"}, Rule(Mode.RECORD)),
        ("off,key:7=record+fail_closed", {}, Rule(Mode.RECORD, fail_closed=True)),
    ],
)
def test_a_key_that_cannot_be_looked_up_has_the_strictest_rule(rules, headers, rule):
    routes = Routes(UPSTREAMS, parse_rules(rules))
    route = routes.route("POST", "/v1/chat/completions", headers)

    assert routes.rule(route, api_key_id=None, headers=headers) == rule


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LCM_GATEWAY_UPSTREAMS", "https://api.openai.com"),
        ("LCM_GATEWAY_UPSTREAMS", "a=ftp://x"),
        ("LCM_GATEWAY_UPSTREAMS", "a=https://user:secret@x"),
        ("LCM_GATEWAY_MODES", "sometimes"),
        ("LCM_GATEWAY_MODES", "record,key:x=off"),
    ],
)
def test_a_setting_that_cannot_be_used_is_explained(name, value):
    [problem] = Environment.read({name: value}).problems

    assert problem.msg.startswith(f"{name}: ")
    assert "secret" not in problem.msg


def test_usual_settings_are_read():
    assert parse_upstreams(Environment.read({}).deployment.gateway_upstreams)["openai"] == "https://api.openai.com"
    assert parse_rules(Environment.read({}).deployment.gateway_modes) == {"": Rule(Mode.RECORD)}
