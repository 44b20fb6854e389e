"""Requests and answers of the three APIs are read, and recognized in every form that agents give them."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.types import Role
from lcmsite.gateway.event_stream import event_of
from lcmsite.gateway.lookups.calls_of_answers import calls_in
from lcmsite.gateway.surfaces import LIST_KEY, Surface, Task, most_output_tokens, read_request, surface_of, wire_message
from lcmsite.gateway.surfaces_answer import AnswerReader, ReadAnswer
from lcmsite.gateway.surfaces_digest import digest_in, links_of, without_injected
from tests.clients.answers import Answer, ToolCall
from tests.lcmsite.gateway.sessions import read_answer, rendered

ANSWER = Answer(
    "It is in the file ä.txt, line 7.", calls=(ToolCall("read", {"path": "ä.txt"}), ToolCall("ls", {})), thinking="Hm?"
)


def read(surface: Surface, data: bytes, *, is_stream: bool, size: int = 1_000_000) -> ReadAnswer:
    reader = AnswerReader(surface, is_stream)
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
    return reader.finish()


def digests(surface: Surface, *rows) -> list[str]:
    return [link.key for link in links_of(wire_message(surface, 0, row).digest for row in rows)]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/v1/messages", (Surface.MESSAGES, Task.GENERATE)),
        ("/v1/messages/count_tokens", (Surface.MESSAGES, Task.COUNT)),
        ("/openai/v1/chat/completions", (Surface.CHAT, Task.GENERATE)),
        ("/v1/responses", (Surface.RESPONSES, Task.GENERATE)),
        ("/v1/responses/compact", (Surface.RESPONSES, Task.COMPACT)),
        ("/v1/responses/resp_1", None),
        ("/v1/threads/t/messages", None),
        ("/v1/models", None),
    ],
)
def test_a_path_belongs_to_its_api(path, found):
    assert surface_of("POST", path) == found
    is_answer = path == "/v1/responses/resp_1"
    assert surface_of("GET", path) == ((Surface.RESPONSES, Task.RETRIEVE) if is_answer else None)


@pytest.mark.parametrize("surface", Surface)
def test_a_streamed_answer_is_read_like_the_whole_one_wherever_its_pieces_end(surface):
    rendering = rendered(surface, ANSWER)
    data = b"".join(rendering.stream())

    whole = read(surface, json.dumps(rendering.whole()).encode(), is_stream=False)
    stream, *others = [read(surface, data, is_stream=True, size=size) for size in (1, 7, 1_000_000)]
    # The last event without its end of line.
    others.append(read(surface, data.rstrip(), is_stream=True))

    assert stream.rows == whole.rows
    assert stream.is_complete and whole.is_complete
    assert (stream.tokens_in, stream.tokens_out, stream.response_id) == (100, 8, whole.response_id)
    assert others == [stream] * 3
    assert ReadAnswer.from_json(json.loads(json.dumps(stream.as_json()))) == stream


def test_an_event_of_several_lines_is_read_as_one():
    event = {"id": "1", "choices": [{"index": 0, "delta": {"content": "Hello"}, "finish_reason": "stop"}]}
    lines = "".join(f"data: {line}\r\n" for line in json.dumps(event, indent=1).splitlines())

    answer = read(Surface.CHAT, f"{lines}\r\ndata: [DONE]".encode(), is_stream=True, size=7)

    assert answer.is_complete
    assert answer.rows == ({"role": "assistant", "content": "Hello"},)


def test_a_large_event_in_small_pieces_is_read_in_linear_time():
    text = "x" * 8 * 1024**2
    event = {"id": "1", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
    began = time.thread_time()

    answer = read(Surface.CHAT, b"data: " + json.dumps(event).encode() + b"\n\n", is_stream=True, size=4096)

    assert answer.rows[0]["content"] == text
    assert time.thread_time() - began < 2


@pytest.mark.parametrize(
    ("surface", "event"),
    [
        (Surface.CHAT, {"choices": [{"index": 0, "delta": {"content": "x" * 500}}]}),
        (
            Surface.MESSAGES,
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 500}},
        ),
        (Surface.RESPONSES, {"type": "response.output_text.delta", "output_index": 0, "delta": "x" * 500}),
    ],
    ids=("chat", "messages", "responses"),
)
def test_a_long_answer_in_many_events_is_read_in_linear_time(surface, event):
    def seconds_of(count: int) -> float:
        data = b"data: " + json.dumps(event).encode() + b"\n\n"
        began = time.thread_time()
        read(surface, data * count, is_stream=True)
        return time.thread_time() - began

    few, many = (min(seconds_of(count) for _ in range(2)) for count in (2_000, 16_000))

    assert many < 24 * few


def test_calls_are_read_from_servers_that_send_null_for_what_they_leave_out():
    first = {"role": "assistant", "content": None, "tool_calls": None}
    call = {"id": "call_1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
    begin = {**call, "index": None, "function": {"name": "ls", "arguments": "{"}}
    end = {"index": None, "function": {"name": None, "arguments": "}"}}
    deltas = [first, {"tool_calls": [begin]}, {"tool_calls": [end]}]
    events = ({"choices": [{"index": 0, "delta": delta}]} for delta in deltas)

    answer = read(
        Surface.CHAT, b"".join(b"data: %s\n\n" % json.dumps(each).encode() for each in events), is_stream=True
    )

    assert answer.rows == ({"role": "assistant", "content": None, "tool_calls": [call]},)


def test_calls_without_bound_do_not_fill_the_memory():
    call = {"index": 10_000_000, "id": "far", "function": {"name": "ls", "arguments": "{}"}}
    event = {"choices": [{"index": 0, "delta": {"content": "Hello", "tool_calls": [call]}}]}

    answer = read(Surface.CHAT, b"data: " + json.dumps(event).encode() + b"\n\n", is_stream=True)

    assert answer.rows == ({"role": "assistant", "content": "Hello", "tool_calls": []},)
    assert not answer.is_complete


DEEP = "[" * 100_000
CALL_OF_CHAT = {"id": "1", "type": "function", "function": {"name": "edit", "arguments": DEEP}}
CALL_OF_RESPONSES = {"type": "function_call", "call_id": "1", "name": "edit", "arguments": DEEP}


@pytest.mark.parametrize(
    ("surface", "row"),
    [(Surface.CHAT, {"role": "assistant", "tool_calls": [CALL_OF_CHAT]}), (Surface.RESPONSES, CALL_OF_RESPONSES)],
)
def test_a_call_with_arguments_of_too_many_levels_is_kept_as_text(surface, row):
    [message] = read_request(surface, {LIST_KEY[surface]: [row]}).messages

    assert message.message.parts[0].tool_input == DEEP
    assert [call.name for call in calls_in(surface, [row])] == ["edit"]


def test_a_streamed_call_with_an_input_of_too_many_levels_is_kept_as_text():
    events = [
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "1", "name": "edit"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": DEEP}},
    ]

    answer = read(Surface.MESSAGES, b"".join(map(event_of, events)), is_stream=True)

    assert answer.rows[0]["content"][0]["input"] == DEEP


@pytest.mark.parametrize("surface", Surface)
def test_a_count_of_tokens_that_cannot_be_stored_leaves_the_answer(surface):
    usage = {"input_tokens": 10**30, "prompt_tokens": 10**30, "output_tokens": 10**30, "completion_tokens": 10**30}
    whole = {**rendered(surface, ANSWER).whole(), "usage": usage}

    answer = read(surface, json.dumps(whole).encode(), is_stream=False)

    assert answer.rows and answer.is_complete
    assert (answer.tokens_in, answer.tokens_out) == (None, None)


@pytest.mark.parametrize("surface", Surface)
def test_an_answer_that_was_cut_off_is_read_as_far_as_it_came(surface):
    data = b"".join(rendered(surface, "It is in the file ä.txt, line 7.").stream())

    cut = data.index(b"\n\n", data.index(b"in the file")) + 5
    found = read(surface, data[:cut], is_stream=True)

    assert not found.is_complete
    assert found.messages[0].message.role is Role.ASSISTANT
    [part] = found.messages[0].message.parts or [None]
    words = found.messages[0].message.content if part is None else part.text_content
    assert words and ANSWER.text.startswith(words) and words != ANSWER.text


@pytest.mark.parametrize("surface", Surface)
@pytest.mark.parametrize(
    "bad", [b"data: {\n\n", b'data: {"type": "content_block_delta"}\n\n', b'data: {"choices": 7}\n\n']
)
def test_an_event_that_cannot_be_read_leaves_the_others(surface, bad):
    first, end, others = b"".join(rendered(surface, ANSWER).stream()).partition(b"\n\n")

    found = read(surface, first + end + bad + others, is_stream=True)

    assert found.rows == read(surface, first + end + others, is_stream=True).rows
    # What is not known to be whole is not taken for it.
    assert not found.is_complete or bad != b"data: {\n\n"


QUESTION = "What is in ä.txt?"
USER = {"role": "user", "content": QUESTION}
FORMS = {
    Surface.MESSAGES: [
        USER,
        {"role": "user", "content": [{"type": "text", "text": QUESTION}]},
        {"role": "user", "content": [{"type": "text", "text": QUESTION, "cache_control": {"type": "ephemeral"}}]},
        {"role": "user", "content": [{"type": "text", "text": "<system-reminder>Today</system-reminder>"},
                                     {"type": "text", "text": QUESTION}]},
        {"role": "user", "content": "<lcm_injected mark=\"0\">Before</lcm_injected>\n" + QUESTION},
    ],
    Surface.CHAT: [USER, {"role": "user", "content": [{"type": "text", "text": QUESTION}]}],
    Surface.RESPONSES: [
        USER,
        {"type": "message", **USER},
        {"type": "message", "id": "msg_1", "role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
    ],
}  # fmt: skip


@pytest.mark.parametrize("surface", Surface)
def test_a_message_is_recognized_in_all_its_forms(surface):
    assert len({tuple(digests(one, form)) for one in Surface for form in FORMS[one]}) == 1
    assert digests(surface, {**USER, "content": "Something else"}) != digests(surface, USER)


@pytest.mark.parametrize("surface", Surface)
def test_an_answer_is_recognized_when_the_agent_sends_it_back_changed(surface):
    rows = read_answer(surface, ANSWER).rows
    changed = json.loads(
        json.dumps(rows).replace("line 7.", "line 7.\\n").replace("call_", "c_").replace("toolu_", "t")
    )
    if surface is Surface.MESSAGES:
        changed[0]["content"] = changed[0]["content"][1:]
    changed = [{key: value for key, value in row.items() if key != "reasoning_content"} for row in changed]

    [*_, before] = links_of(wire_message(surface, 0, row).digest for row in rows)
    [*_, after] = links_of(wire_message(surface, 0, row).digest for row in changed)

    assert before == after


@given(st.lists(st.sampled_from(["yes", "no", "go on"]), max_size=6))
def test_equal_messages_at_other_places_have_other_keys(words):
    keys = digests(Surface.CHAT, *({"role": "user", "content": word} for word in words))

    assert len(set(keys)) == len(words)
    assert len({digest_in(key) for key in keys}) == len(set(words))


def test_results_and_system_messages_do_not_move_the_chain():
    call = {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]}  # fmt: skip
    result = {"role": "tool", "tool_call_id": "c1", "content": "a.txt"}

    whole = digests(Surface.CHAT, USER, call, result, {"role": "system", "content": "Be brief."}, USER)
    cleared = digests(Surface.CHAT, USER, call, {**result, "content": "[cleared]"}, USER)

    assert whole[-1] == cleared[-1]
    assert whole[2] != cleared[2]
    assert digest_in(whole[2]) not in ("", digest_in(cleared[2]))


def test_a_request_is_read_with_its_instructions_apart():
    request = read_request(
        Surface.RESPONSES,
        {"model": "m", "instructions": "Code.", "input": [{"role": "developer", "content": "Rules."}, USER],
         "stream": True, "tools": [{"type": "function", "name": "ls"}], "max_output_tokens": 1},
    )  # fmt: skip

    assert [message.index for message in request.messages] == [1]
    assert request.messages[0].row == USER
    assert [row.get("text", row.get("content")) for row in request.instructions] == ["Code.", "Rules."]
    assert (request.is_delta, most_output_tokens(request.body)) == (False, 1)


@pytest.mark.parametrize(
    ("surface", "more", "parent"),
    [
        (Surface.RESPONSES, {"previous_response_id": "resp_1"}, "resp_1"),
        (Surface.RESPONSES, {"conversation": {"id": "conv_1"}}, None),
        (Surface.MESSAGES, {"thread": {"type": "continue", "previous_message_id": "msg_1"}}, "msg_1"),
    ],
)
def test_a_request_with_only_what_is_new_is_known_as_one(surface, more, parent):
    request = read_request(surface, {"messages": [USER], "input": [USER], **more})

    assert request.is_delta
    assert request.parent_response == parent


@pytest.mark.parametrize("character", ["\x00", "\ud800"])
def test_an_id_that_cannot_be_stored_refers_to_no_answer(character):
    request = read_request(Surface.RESPONSES, {"input": [USER], "previous_response_id": f"resp_{character}"})

    assert (request.parent_response, request.is_delta) == (None, False)


@pytest.mark.parametrize("row", [7, {}, {"role": "x"}, {"role": "user", "content": 7}, {"type": "unheard_of"}])
def test_what_cannot_be_read_is_kept_as_it_came(row):
    for surface in Surface:
        message = wire_message(surface, 3, row)

        assert message.message.content is not None or message.message.parts
        assert message.index == 3


@pytest.mark.parametrize("opening", ["<system-reminder>", '<lcm_injected mark="a">', "<lcm_injected "])
def test_many_reminders_that_are_never_closed_are_read_in_linear_time(opening):
    began = time.process_time()

    assert without_injected(opening * 200_000) == (opening * 200_000).strip()

    assert time.process_time() - began < 5


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("a<system-reminder>b<system-reminder></system-reminder>c</system-reminder>", "ac</system-reminder>"),
        ("<system-reminder>a <lcm_injected m>b</lcm_injected> c", "<system-reminder>a  c"),
        ("<lcm_injected m>x-anthropic-billing-header: a</lcm_injected><system-reminder>b</system-reminder>c", "c"),
        ("a\nx-anthropic-billing-header: b\nc", "a\n\nc"),
    ],
)
def test_injected_texts_end_at_their_first_closing_tag(text, rest):
    assert without_injected(text) == rest
