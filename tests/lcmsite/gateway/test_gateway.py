"""The gateway forwards every byte as it came, and records beside that."""

import gzip
import http.client
import json
import threading
import time
from functools import partial

import httpx2
import pytest
import zstandard

from lcmsite.gateway.forwarding import build_client
from lcmsite.gateway.recording.exchange_journal import SIDE
from lcmsite.gateway.surfaces import Surface
from lcmsite.models import ApiKey, GatewayExchange
from tests.clients.answers import Answer, ToolCall
from tests.lcmsite.callers import an_api_key
from tests.lcmsite.gateway.sessions import PATHS, SESSION, TOOL, body_of, mine, rendered, user, words
from tests.lcmsite.gateway.upstream import answering, streaming
from tests.lcmsite.operating import eventually

# Written as no program of ours would write it.
ODD = (
    b'{ "model":"m" , "max_tokens": 9,"x_new":{"b":1.0,"a":"\\u00e4\\/"},\n'
    b' "%b" : [{"role":"user","content":"Hello \\ud83d\\ude00"}] }'
)
EVENTS = {surface: [*rendered(surface, "Good morning to you.").stream()] for surface in Surface}


def odd(surface: Surface) -> bytes:
    return ODD % (b"input" if surface is Surface.RESPONSES else b"messages")


def recorded(gateway, count: int) -> list[str]:
    """What is stored, once all of it is."""
    workspace = ApiKey.objects.get(prefix=gateway.key[:12]).workspace

    def is_done():
        exchanges = GatewayExchange.objects.filter(workspace=workspace)
        found = mine(gateway)
        return found and found.messages.count() >= count and not exchanges.filter(milliseconds=None).exists()

    eventually(is_done)
    return words(mine(gateway))


@pytest.mark.parametrize("surface", Surface)
def test_bytes_pass_untouched_both_ways_and_are_recorded(gateway, surface):
    pieces = [b": a comment\n\n", b'event: ping\ndata: {"type": "ping"}\r\n\r\n', *EVENTS[surface]]
    gateway.upstream.reply = streaming(*pieces, request_id="req_1", anthropic_ratelimit_requests_limit="7")

    answer = gateway.ask(PATHS[surface], odd(surface), content_type="application/json", anthropic_beta="new-2026-01-01")

    assert answer.content == b"".join(pieces)
    [(verb, path, headers, body)] = gateway.upstream.requests
    assert (verb, path, body) == ("POST", PATHS[surface], odd(surface))
    sent = dict(headers)
    assert (sent["anthropic-beta"], sent["x-api-key"]) == ("new-2026-01-01", "vendor-secret")
    assert not any(name.lower().startswith("x-lcm") for name in sent)
    assert (answer.headers["request-id"], answer.headers["anthropic-ratelimit-requests-limit"]) == ("req_1", "7")
    assert answer.headers["x-lcm-status"].partition(";")[0] in ("recorded", "recording", "degraded")
    assert recorded(gateway, 2) == ["Hello 😀", "Good morning to you."]
    assert mine(gateway).session_id == answer.headers["x-lcm-session-id"] == f"gateway/{SESSION}"
    assert answer.headers["x-lcm-session-source"] == "x-claude-code-session-id"


def test_the_first_byte_comes_before_the_last(gateway):
    held = threading.Event()
    gateway.upstream.reply = streaming(*EVENTS[Surface.CHAT], between=lambda number: number == 1 and held.wait(10))

    with gateway.stream(PATHS[Surface.CHAT], odd(Surface.CHAT)) as answer:
        pieces = answer.iter_raw()
        assert next(pieces) == EVENTS[Surface.CHAT][0]
        held.set()
        assert b"".join(pieces) == b"".join(EVENTS[Surface.CHAT][1:])


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_sdks_of_the_vendors_work_through_it(gateway, is_streamed):
    # Not imported above: they take longer to load than all tests here to run, and each worker looks for tests here.
    import anthropic
    import openai

    script = Answer("It is in the file.", calls=(ToolCall("read", {"path": "ä.txt"}),), thinking="Where?")

    def reply(handler):
        surface = next(each for each in Surface if handler.path.startswith(PATHS[each].partition("?")[0]))
        rendering = rendered(surface, script)
        (streaming(*rendering.stream()) if is_streamed else answering(rendering.whole()))(handler)

    def answer(resource, final, **request):
        if not is_streamed:
            return resource.create(model="m", **request)
        with resource.stream(model="m", **request) as stream:
            return getattr(stream, final)()

    gateway.upstream.reply = reply
    named = {"x-lcm-api-key": gateway.key, "x-lcm-session-id": "of the SDKs"}
    claude = anthropic.Anthropic(base_url=gateway.url, api_key="x", max_retries=0, default_headers=named)
    gpt = openai.OpenAI(base_url=f"{gateway.url}/v1", api_key="x", max_retries=0, default_headers=named)

    message = answer(claude.messages, "get_final_message", max_tokens=9, tools=[TOOL], messages=[user("Where?")])
    completion = answer(gpt.chat.completions, "get_final_completion", messages=[user("Where?")])
    response = answer(gpt.responses, "get_final_response", input="Where?")

    assert message.content[1].text == completion.choices[0].message.content == response.output_text == script.text
    # One session, whatever it spoke; the thought came in one of them as an item of its own.
    found = recorded(gateway, 2)
    assert found[0] == "Where?" and sum("It is in the file." in each for each in found) == 1


@pytest.mark.parametrize("name", ["sé 👩\u200d🚀", "x" * 500])
def test_a_session_of_its_own_header_is_used_unchanged(gateway, name):
    assert gateway.ask(PATHS[Surface.CHAT], odd(Surface.CHAT), x_lcm_session_id=name.encode()).status_code == 200

    recorded(gateway, 2)
    assert mine(gateway).session_id == name


def test_a_session_that_can_have_no_such_name_is_refused(gateway):
    answer = gateway.ask(PATHS[Surface.CHAT], odd(Surface.CHAT), x_lcm_session_id="x" * 501)

    assert answer.status_code == 400 and "at most 500 characters" in answer.json()["error"]["message"]
    assert gateway.upstream.requests == []


@pytest.mark.parametrize(("surface", "coding"), [(Surface.MESSAGES, "gzip"), (Surface.RESPONSES, "zstd")])
def test_coded_bodies_pass_as_they_are_and_are_read(gateway, surface, coding):
    pack = {"gzip": partial(gzip.compress, mtime=0), "zstd": zstandard.ZstdCompressor().compress}[coding]
    packed = pack(b"".join(EVENTS[surface]))
    gateway.upstream.reply = streaming(packed[:50], packed[50:], content_encoding=coding)
    headers = {"content_encoding": coding, "accept_encoding": "br, gzip;q=0.5, zstd"}

    with gateway.stream(PATHS[surface], pack(odd(surface)), **headers) as answer:
        came = b"".join(answer.iter_raw())

    assert came == packed
    [(_, _, sent, body)] = gateway.upstream.requests
    assert body == pack(odd(surface))
    assert dict(sent)["accept-encoding"].replace(" ", "") == "gzip;q=0.5,zstd"
    assert recorded(gateway, 2) == ["Hello 😀", "Good morning to you."]


def test_a_stream_whose_type_is_in_capitals_is_read(gateway):
    gateway.upstream.reply = streaming(*EVENTS[Surface.MESSAGES], content_type="Text/Event-Stream; charset=utf-8")

    with gateway.stream(PATHS[Surface.MESSAGES], odd(Surface.MESSAGES)) as answer:
        answer.read()

    assert recorded(gateway, 2) == ["Hello 😀", "Good morning to you."]


@pytest.mark.parametrize(
    ("verb", "path"),
    [
        ("GET", "/v1/models?limit=1000"),
        ("HEAD", "/api/hello"),
        ("DELETE", "/v1/responses/resp_1"),
        ("POST", "/v1/messages/count_tokens?beta=true"),
        ("POST", "/v1/files"),
    ],
)
def test_all_else_is_passed_on(gateway, verb, path):
    gateway.upstream.reply = answering(b"" if verb == "HEAD" else b'{"input_tokens": 7}', status=202)

    answer = gateway.ask(path, b"{ }" if verb == "POST" else b"", verb=verb)

    assert answer.status_code == 202
    [(verb_there, path_there, _, body)] = gateway.upstream.requests
    assert (verb_there, path_there, body) == (verb, path, b"{ }" if verb == "POST" else b"")
    assert answer.headers["x-lcm-status"] == "passed; reason=not-recorded"
    assert mine(gateway) is None


def test_a_compaction_that_is_asked_of_the_vendor_passes_untouched(gateway):
    item = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"}
    whole = json.dumps({"id": "resp_1", "object": "response.compaction", "output": [item]}).encode()
    gateway.upstream.reply = answering(whole)

    answer = gateway.ask("/v1/responses/compact", odd(Surface.RESPONSES))

    assert answer.content == whole
    [(_, path, _, body)] = gateway.upstream.requests
    assert (path, body) == ("/v1/responses/compact", odd(Surface.RESPONSES))
    eventually(lambda: mine(gateway) and mine(gateway).journal_entries.filter(subpath=SIDE).exists())
    assert json.loads(mine(gateway).journal_entries.get(subpath=SIDE).entry)["answer"] == [item]
    assert mine(gateway).messages.count() == 0


def test_an_answer_that_is_made_in_the_background_is_recorded_once_when_it_is_retrieved(gateway):
    def ask(whole, path=PATHS[Surface.RESPONSES], body=b"", **more):
        gateway.upstream.reply = answering({**whole, **more})
        answer = gateway.ask(path, body, verb="POST" if body else "GET", x_claude_code_session_id="")
        assert answer.json() == {**whole, **more}

    first, second = (rendered(Surface.RESPONSES, text).whole() for text in ("Late.", "More."))
    retrieval = f"{PATHS[Surface.RESPONSES]}/{first['id']}"
    ask(first, body=body_of(Surface.RESPONSES, [user("Take your time.")], background=True), status="queued", output=[])
    ask(first, retrieval, status="in_progress", output=[])
    ask(first, retrieval)
    recorded(gateway, 2)
    ask(first, retrieval, output=[{"type": "reasoning", "id": "rs_1", "summary": []}, *first["output"]])

    ask(second, body=body_of(Surface.RESPONSES, [user("And?")], previous_response_id=first["id"]))

    assert recorded(gateway, 4) == ["Take your time.", "Late.", "And?", "More."]
    assert mine(gateway).moves == 0


def test_a_request_after_an_answer_that_was_not_retrieved_stays_in_its_conversation(gateway):
    first = rendered(Surface.RESPONSES, "Late.").whole()
    for text, more in (("One", {"background": True}), ("Two", {"previous_response_id": first["id"]})):
        gateway.upstream.reply = answering({**first, "status": "queued", "output": []})
        gateway.ask(
            PATHS[Surface.RESPONSES], body_of(Surface.RESPONSES, [user(text)], **more), x_claude_code_session_id=""
        )

    assert recorded(gateway, 2) == ["One", "Two"]


def test_connections_are_kept_on_both_sides(gateway):
    behind, before = [], []

    def reply(handler):
        behind.append(handler.client_address)
        answering(b"{}")(handler)

    gateway.upstream.reply = reply
    client = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=30)
    for _ in range(2):
        client.request("POST", "/v1/files", b"{}", {"x-lcm-api-key": gateway.key})
        before.append(client.sock)
        assert client.getresponse().read() == b"{}"

    assert before[0] is before[1] is client.sock
    assert len(behind) == 2 and len(set(behind)) == 1
    client.close()


def test_a_vendor_may_think_for_ten_minutes():
    timeout = build_client().timeout

    assert (timeout.read, timeout.connect) == (600, 10)


def test_a_large_body_that_is_only_passed_on_is_not_bounded(gateway):
    gateway.upstream.reply = answering(b"{}")

    answer = gateway.ask("/v1/files", (b"x" * 1024**2 for _ in range(33)))

    assert answer.status_code == 200
    assert len(gateway.upstream.requests[0][3]) == 33 * 1024**2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("surface", Surface)
def test_an_error_of_the_upstream_passes_as_it_is(gateway, surface):
    refusal = b'{"type": "error" , "error":{"type":"overloaded_error","message":"Overloaded"}}'
    gateway.upstream.reply = answering(refusal, status=529, retry_after="17", request_id="req_9")

    answers = [gateway.ask(PATHS[surface], odd(surface)) for _ in range(2)]

    assert {(each.status_code, each.content, each.headers["retry-after"]) for each in answers} == {(529, refusal, "17")}
    assert recorded(gateway, 1) == ["Hello 😀"]
    exchanges = GatewayExchange.objects.filter(conversation=mine(gateway))
    eventually(lambda: [each.error for each in exchanges.all()] == ["overloaded_error"] * 2)


def test_keys_of_vendors_are_nowhere_kept_and_that_of_lcm_goes_to_no_vendor(gateway):
    gateway.upstream.reply = answering(rendered(Surface.CHAT, "Hi.").whole())

    path, body = PATHS[Surface.CHAT], odd(Surface.CHAT)
    answer = gateway.ask(f"/k/{gateway.key}/gw/test{path}", body, x_lcm_api_key="")
    gateway.ask(path, body, x_lcm_api_key="", authorization=f"Bearer {gateway.key}", cookie="a=b")
    for name in ("authorization", "x_api_key", "api_key", "x_goog_api_key"):
        gateway.ask(path, body, **{name: gateway.key})
    for written in (f"Bearer\t{gateway.key}", f'Bearer "{gateway.key}"', f"Bearer={gateway.key}, x"):
        gateway.ask(path, body, authorization=written)
    gateway.ask(f"{path}?a=b&key={gateway.key}&c", body)

    assert answer.json()["choices"][0]["message"]["content"] == "Hi."
    assert {path for _, path, _, _ in gateway.upstream.requests} == {
        "/v1/chat/completions", "/v1/chat/completions?a=b&c"
    }  # fmt: skip
    assert gateway.key not in str(gateway.upstream.requests)
    workspace = ApiKey.objects.get(prefix=gateway.key[:12]).workspace
    done = GatewayExchange.objects.filter(workspace=workspace, milliseconds__isnull=False)
    eventually(lambda: done.count() == 10)
    kept = [gateway.log.read_text(), *(path.read_text() for path in gateway.spool.rglob("*") if path.is_file())]
    assert not any(secret in text for text in kept for secret in (gateway.key, "vendor-secret", "Hello"))


def test_a_conversation_whose_name_no_header_can_have_gets_its_answer(gateway):
    whole = rendered(Surface.RESPONSES, "Hi.").whole()
    gateway.upstream.reply = answering(whole)
    body = body_of(Surface.RESPONSES, [user("Hello")], conversation="conv\r\nset-cookie: x")

    # So that its name is known when the answer begins.
    answer = gateway.ask(PATHS[Surface.RESPONSES], body, x_claude_code_session_id="", x_lcm_fail_closed="true")

    assert (answer.status_code, answer.json()) == (200, whole)
    assert recorded(gateway, 2) == ["Hello", "Hi."]


@pytest.mark.parametrize("surface", [Surface.MESSAGES, Surface.CHAT, None])
def test_whoever_may_not_record_is_refused_in_the_shape_of_the_api(gateway, surface):
    path = PATHS[surface] if surface else "/v1/models"
    read_only = an_api_key(None, "read")

    answers = [
        gateway.ask(path, odd(surface or Surface.CHAT), x_lcm_api_key=key) for key in ("", "lcm_wrong", read_only)
    ]

    assert [each.status_code for each in answers] == [401, 401, 403]
    assert gateway.upstream.requests == []
    body = answers[0].json()
    if surface is Surface.MESSAGES:
        assert body["type"] == "error" and body["error"]["type"] == "authentication_error"
    elif surface:
        assert body["error"]["type"] == "authentication_error" and "x-lcm-api-key" in body["error"]["message"]
    assert {each.headers["x-lcm-status"].partition(";")[0] for each in answers} == {"refused"}


def test_upstreams_are_those_of_the_list_alone(gateway):
    paths = ("/gw/other/v1/messages", "/gw/https:%2F%2Fexample.com/v1/messages", "/gw/test/../x", "/gw/test/v1/.%2E/x")
    for path in paths:
        answer = gateway.ask(path, odd(Surface.MESSAGES), x_lcm_upstream="http://example.com")
        assert (answer.status_code, answer.json().get("code", "no_such_upstream")) == (404, "no_such_upstream"), path

    assert gateway.upstream.requests == []


@pytest.mark.parametrize("surface", Surface)
def test_an_unknown_upstream_is_refused_in_the_form_of_the_api(gateway, surface):
    answer = gateway.ask(f"/gw/other{PATHS[surface]}", odd(surface))

    assert answer.status_code == 404
    assert answer.json()["error"]["message"].startswith("LCM gateway: There is no such upstream")


def test_a_body_of_over_32_mib_is_refused(gateway):
    answer = gateway.ask(PATHS[Surface.MESSAGES], b"x" * (32 * 1024**2 + 1))

    assert (answer.status_code, answer.json()["error"]["type"]) == (413, "request_too_large")
    assert gateway.upstream.requests == []


def test_a_request_can_go_unrecorded(gateway):
    gateway.upstream.reply = streaming(*EVENTS[Surface.CHAT])

    answer = gateway.ask(PATHS[Surface.CHAT], odd(Surface.CHAT), x_lcm_mode="off")

    assert answer.content == b"".join(EVENTS[Surface.CHAT])
    assert answer.headers["x-lcm-status"] == "passed; reason=off"
    assert mine(gateway) is None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("surface", Surface)
def test_an_answer_that_breaks_off_breaks_off_for_the_client_and_is_kept(gateway, surface):
    middle = len(EVENTS[surface]) // 2
    gateway.upstream.reply = streaming(*EVENTS[surface][:middle], cut=True)

    with pytest.raises(httpx2.RemoteProtocolError):
        gateway.ask(PATHS[surface], odd(surface))

    found = recorded(gateway, 2)
    assert "Good morning to you.".startswith(found[1])
    assert mine(gateway).messages.get(seq=2).metadata["gateway"]["interrupted"] is True


@pytest.mark.parametrize("mode", ["record", "off"])
def test_a_client_that_leaves_ends_the_request_upstream(gateway, mode):
    def slowly(number):
        time.sleep(0 if number < 4 else 0.05)

    gateway.upstream.reply = streaming(*EVENTS[Surface.MESSAGES][:5], *[b": wait\n\n"] * 500, between=slowly)
    with gateway.stream(PATHS[Surface.MESSAGES], odd(Surface.MESSAGES), x_lcm_mode=mode) as answer:
        next(answer.iter_raw())

    assert gateway.upstream.gone.wait(10)
    if mode == "off":
        assert mine(gateway) is None
    else:
        assert recorded(gateway, 1)[0] == "Hello 😀"


def test_an_upstream_that_is_away_is_told_in_the_shape_of_the_api(gateway):
    def hang_up(handler):
        handler.close_connection = True
        handler.connection.close()

    gateway.upstream.reply = hang_up

    answer = gateway.ask(PATHS[Surface.MESSAGES], odd(Surface.MESSAGES))

    assert (answer.status_code, answer.json()["error"]["type"]) == (502, "overloaded_error")
    assert recorded(gateway, 1) == ["Hello 😀"]


@pytest.mark.thorough
def test_requests_of_one_session_at_once_are_all_recorded(gateway):
    gateway.upstream.reply = streaming(*EVENTS[Surface.CHAT])
    bodies = [body_of(Surface.CHAT, [user("Hello"), user(f"Number {n}")]) for n in range(8)]

    threads = [threading.Thread(target=gateway.ask, args=(PATHS[Surface.CHAT], body)) for body in bodies]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    recorded(gateway, 17)
    found = words(mine(gateway), active=False)
    assert len(found) == 17 and sorted(set(found)) == sorted(
        ["Hello", "Good morning to you.", *(f"Number {n}" for n in range(8))]
    )
