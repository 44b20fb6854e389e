"""An assembled context as somebody's API takes it: valid whatever was stored, and honest about every change."""

from __future__ import annotations

import gc
import json
import re
import time
from dataclasses import replace

import pytest

from conversations.formats import RENDERERS
from conversations.formats.anthropic import from_anthropic
from conversations.formats.openai_chat import from_openai_chat
from conversations.formats.openai_responses import from_openai_responses
from conversations.formats.pairing import MISSING, ORPHAN
from conversations.formats.rendered import MessageFormat, RepairKind
from conversations.scope import Scope
from conversations.types import ContextItemType, NewMessage, NewPart, PartType, Role
from lcmsite.catalogue.json_text import as_ascii_json
from retrieval.assembler import ContextAssembler
from tests.conversations.interchange.forms import of_blocks
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace, say
from tests.retrieval.showing import EXCHANGE, PNG, assistant, items_of, repaired, shown, user
from tests.retrieval.vendors import CHECKS
from tests.summaries import a_summary_of


@pytest.fixture(params=CHECKS)
def format(request: pytest.FixtureRequest) -> str:
    """Each vendor's format in turn."""
    return str(request.param)


CALL = {"id": "call_1", "type": "function", "function": {"name": "read_file", "arguments": '{"path": "a.py"}'}}
PLAIN = {
    "openai": (
        {"role": "system", "content": "Be careful."},
        {"role": "user", "content": "Read a.py."},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "contents"},
        {"role": "assistant", "content": "It is short."},
    ),
    "openai_responses": (
        {"role": "system", "content": "Be careful."},
        {"role": "user", "content": "Read a.py."},
        {"type": "function_call", "call_id": "call_1", "name": "read_file", "arguments": '{"path": "a.py"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "contents"},
        {"role": "assistant", "content": "It is short."},
    ),
    "anthropic": (
        of_blocks({"type": "text", "text": "Read a.py."}),
        of_blocks(
            {"type": "tool_use", "id": "call_1", "name": "read_file", "input": {"path": "a.py"}}, role="assistant"
        ),
        of_blocks({"type": "tool_result", "tool_use_id": "call_1", "content": "contents"}),
        of_blocks({"type": "text", "text": "It is short."}, role="assistant"),
    ),
}


def test_a_plain_exchange_comes_as_the_vendor_has_it(format):
    context = shown(format, NewMessage(Role.SYSTEM, "Be careful."), *EXCHANGE, assistant("It is short."))

    assert context.messages == PLAIN[format]
    assert context.system == (({"type": "text", "text": "Be careful."},) if format == "anthropic" else ())
    assert context.sources == tuple((f"msg_{seq}",) for seq in range(6 - len(context.messages), 6))
    assert context.repairs == ()


def test_nothing_at_all_is_no_message(format):
    assert shown(format).messages == ()


def test_a_text_that_models_ignore_is_left_out(format):
    note = NewPart(PartType.TEXT, text_content="A note to the user.", is_ignored=True)

    context = shown(format, user("Read a.py."), assistant("It is short.", note), NewMessage(Role.USER, parts=(note,)))

    assert "It is short." in str(context.messages) and "A note" not in str(context.messages)
    assert repaired(context) == {RepairKind.DROPPED_EMPTY: ("msg_3",)}


READ = user("Read.")
THE_CALL, THE_RESULT = EXCHANGE[1:]
NAMELESS = [replace(each, parts=(replace(each.parts[0], tool_call_id=None),)) for each in EXCHANGE[1:]]
AT_ONCE = assistant("Reading.", *(a_tool_call(f"call_{n}", path=f"{n}.py").parts[0] for n in range(3)))
BOTH = replace(THE_CALL.parts[0], tool_output="contents", tool_status="completed")
STRANGE_ID = "functions.read/файл:" + "7" * 90
STRANGE = a_tool_call(STRANGE_ID, name="файл.read " + "x" * 80, path="a.py")
# Messages, the repairs that they need beside those of one vendor alone, and what is shown, in this order.
REPAIRED: dict[str, tuple[tuple[NewMessage, ...], dict[RepairKind, tuple[str, ...]], tuple[str, ...]]] = {
    "a result without its call becomes a text that says what it is": (
        (user("Go on."), a_tool_result("call_9", "contents"), assistant("I see.")),
        {RepairKind.ORPHAN_RESULT: ("msg_2",)},
        (ORPHAN, "contents"),
    ),
    "a call without a result is given one that says so": (
        (*EXCHANGE[:2], user("Never mind.")),
        {RepairKind.MISSING_RESULT: ("msg_2",)},
        (MISSING,),
    ),
    "a result that came late stands behind its call": (
        (READ, THE_CALL, user("Hurry up."), THE_RESULT),
        {RepairKind.MOVED_RESULT: ("msg_4",)},
        ("contents", "Hurry up."),
    ),
    "ids that are used again are told apart": (
        (*EXCHANGE, *EXCHANGE[1:], *EXCHANGE[1:]),
        {RepairKind.RENAMED_CALL: ("msg_4", "msg_6")},
        ('"call_1_2"', '"call_1_2"', '"call_1_3"', '"call_1_3"'),
    ),
    "calls without ids are paired by their place": (
        (READ, *NAMELESS),
        {RepairKind.RENAMED_CALL: ("msg_2",)},
        ("contents",),
    ),
    "strange ids and tool names are made to fit": (
        (READ, STRANGE, a_tool_result(STRANGE_ID, "contents")),
        {RepairKind.RENAMED_CALL: ("msg_2",), RepairKind.RENAMED_TOOL: ("msg_2",)},
        ("contents",),
    ),
    "calls at once keep their results apart, in whatever order those came": (
        (READ, AT_ONCE, *(a_tool_result(f"call_{n}", f"contents of {n}") for n in (2, 0, 1))),
        {},
        ("contents of 0", "contents of 1", "contents of 2"),
    ),
    "a part that is call and result at once comes as both": (
        (READ, assistant("Reading.", BOTH, NewPart(PartType.TEXT, text_content="Done."))),
        {},
        ("Reading.", '"contents"', "Done."),
    ),
    "content of its own beside parts is shown too": (
        (READ, replace(THE_CALL, content="I will read it."), THE_RESULT),
        {},
        ("I will read it.", "contents"),
    ),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_an_exchange_is_shown_and_repaired_alike_for_all_vendors(format, name):
    messages, repairs, words = REPAIRED[name]

    context = shown(format, *messages)

    assert repaired(context).items() >= repairs.items()
    assert bool(repairs) == bool(context.repairs)
    assert re.search(".*".join(map(re.escape, words)), json.dumps(context.messages))


@pytest.mark.parametrize("character", ["\ud83d", "\x00"])
def test_a_lone_surrogate_and_nul_are_replaced(format, character):
    call = a_tool_call("call_1", path=f"a{character}.py")

    context = shown(format, user(f"half {character} here"), call, a_tool_result("call_1", character))

    assert repaired(context)[RepairKind.REPLACED_CHARACTERS][0] == "msg_1"
    [what] = [each.what for each in context.repairs if each.kind is RepairKind.REPLACED_CHARACTERS]
    assert what == "NUL characters and lone surrogates were replaced by U+FFFD."
    assert "half \ufffd here" in json.dumps(context.messages, ensure_ascii=False)


def test_anthropic_begins_with_the_user_and_takes_turns():
    context = shown("anthropic", assistant("Hi."), assistant("Anybody?"), user("Yes."), user("Me, too."), user(" "))

    assert [message["role"] for message in context.messages] == ["user", "assistant", "user"]
    assert repaired(context) == {
        RepairKind.ADDED_START: ("msg_1",),
        RepairKind.MERGED_NEIGHBOURS: ("msg_1", "msg_2", "msg_3", "msg_4"),
        RepairKind.DROPPED_EMPTY: ("msg_5",),
    }
    assert context.sources == ((), ("msg_1", "msg_2"), ("msg_3", "msg_4"))


def test_anthropic_has_the_system_apart_and_its_last_word_without_white_space():
    context = shown("anthropic", user("Hi."), NewMessage(Role.SYSTEM, "Be brief."), assistant("Well \n"))

    assert context.system == ({"type": "text", "text": "Be brief."},)
    assert context.messages[-1]["content"] == [{"type": "text", "text": "Well"}]
    assert repaired(context) == {RepairKind.MOVED_SYSTEM: ("msg_2",), RepairKind.STRIPPED_END: ("msg_3",)}


@pytest.mark.parametrize(
    ("given_input", "wanted"),
    [
        ('{"a": 1}', {"a": 1}),
        ("not json", {"input": "not json"}),
        ('{"a": NaN}', {"input": '{"a": NaN}'}),
        ([1, 2], {"input": [1, 2]}),
        ("[" * 100_000, {"input": "[" * 100_000}),
    ],
    ids=lambda value: str(value)[:20],
)
def test_the_input_of_a_call_is_an_object_for_anthropic(given_input, wanted):
    part = replace(EXCHANGE[1].parts[0], tool_input=given_input)

    context = shown("anthropic", user("Read."), NewMessage(Role.ASSISTANT, parts=(part,)), EXCHANGE[2])

    assert context.messages[1]["content"][0]["input"] == wanted
    assert (RepairKind.WRAPPED_INPUT in repaired(context)) == ("input" in wanted)


def test_arguments_are_for_openai_the_very_text_that_they_came_as():
    arguments = '{"path":"a.py" , "n": 1e3}'
    call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": arguments}}
    said = from_openai_chat({"role": "assistant", "content": None, "tool_calls": [call], "audio_": 1})
    answer = from_openai_chat({"role": "tool", "tool_call_id": "c", "content": "contents"})

    context = shown("openai", user("Read."), said, answer)

    assert context.messages[1] == {"role": "assistant", "tool_calls": [call]}


THOUGHT = {"type": "thinking", "thinking": "The file will tell.", "signature": "EqQB"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}
AS_ANTHROPIC_HAS_IT = (
    of_blocks({"type": "text", "text": "Read a.py."}),
    of_blocks(
        THOUGHT,
        {"type": "redacted_thinking", "data": "EmwK"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a.py"}},
        {"type": "tool_use", "id": "toolu_2", "name": "screenshot", "input": {}},
        role="assistant",
    ),
    of_blocks(
        {"type": "tool_result", "tool_use_id": "toolu_1", "content": "contents"},
        {"type": "tool_result", "tool_use_id": "toolu_2", "content": [{"type": "text", "text": "done"}, PICTURE]},
    ),
    of_blocks({"type": "text", "text": "It is short."}, role="assistant"),
)


def test_what_came_as_anthropic_has_it_goes_there_as_it_came_thoughts_and_all():
    context = shown("anthropic", *map(from_anthropic, AS_ANTHROPIC_HAS_IT))

    assert context.messages == AS_ANTHROPIC_HAS_IT
    assert context.repairs == ()


def test_the_thoughts_of_one_vendors_model_are_not_shown_to_another():
    context = shown("openai", *map(from_anthropic, AS_ANTHROPIC_HAS_IT))

    assert "The file will tell." not in json.dumps(context.messages)
    assert [message["role"] for message in context.messages] == ["user", "assistant", "tool", "tool", "assistant"]


def test_a_thought_that_came_before_its_call_as_a_message_of_its_own_is_shown_with_it():
    asked, (thought, redacted, words, *calls) = AS_ANTHROPIC_HAS_IT[0], AS_ANTHROPIC_HAS_IT[1]["content"]
    apart = [{"role": "assistant", "content": blocks} for blocks in ([thought], [redacted], [words, *calls])]

    context = shown("anthropic", *map(from_anthropic, (asked, *apart, *AS_ANTHROPIC_HAS_IT[2:])))

    assert context.messages == AS_ANTHROPIC_HAS_IT


def test_a_thought_that_led_to_nothing_and_one_without_a_signature_are_left_out(format):
    alone = from_anthropic(of_blocks(THOUGHT, role="assistant"))
    forged = from_anthropic(of_blocks({**THOUGHT, "thinking": "hmm", "signature": 5}, role="assistant"))
    unsigned = NewPart(PartType.REASONING, text_content="hmm")

    context = shown(
        format, user("Go on."), alone, user("Well?"), forged, user("And?"), assistant("Done.", unsigned, *forged.parts)
    )

    assert set(repaired(context)[RepairKind.DROPPED_EMPTY]) == {"msg_2", "msg_4"}
    assert "hmm" not in json.dumps(context.messages)
    assert "thinking" not in json.dumps(context.messages)


def test_openai_keeps_custom_calls_and_how_closely_an_image_is_to_be_looked_at():
    image = {"type": "image_url", "image_url": {"url": PNG, "detail": "low"}}
    custom = {"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}

    context = shown(
        "openai",
        from_openai_chat({"role": "user", "content": [{"type": "text", "text": "Look."}, image]}),
        from_openai_chat({"role": "assistant", "content": None, "tool_calls": [custom]}),
        from_openai_chat({"role": "tool", "tool_call_id": "c", "content": "a.py"}),
    )

    assert context.messages[0]["content"][1] == image
    assert context.messages[1]["tool_calls"] == [custom]


def test_what_came_by_one_of_openais_apis_goes_to_the_other_custom_calls_and_all():
    items = [
        {"role": "user", "content": "Look."},
        {"type": "custom_tool_call", "call_id": "c", "name": "sh", "input": "ls -l"},
        {"type": "custom_tool_call_output", "call_id": "c", "output": "a.py"},
        {"type": "function_call", "call_id": "f", "name": "read", "arguments": '{"path":"a.py"}'},
        {"type": "function_call_output", "call_id": "f", "output": "def f"},
    ]
    chat = [
        {"role": "user", "content": "Look."},
        {"role": "assistant", "tool_calls": [
            {"id": "c", "type": "custom", "custom": {"name": "sh", "input": "ls -l"}}]},
        {"role": "tool", "tool_call_id": "c", "content": "a.py"},
        {"role": "assistant", "tool_calls": [
            {"id": "f", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'}}]},
        {"role": "tool", "tool_call_id": "f", "content": "def f"},
    ]  # fmt: skip

    of_items, of_chat = [*map(from_openai_responses, items)], [*map(from_openai_chat, chat)]

    for messages in (of_items, of_chat):
        assert list(shown("openai_responses", *messages).messages) == items
        assert list(shown("openai", *messages).messages) == chat


A_THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": text} for text in ("It must be in a.py.", "Or is it?")],
    "encrypted_content": "gAAAA",
}


def test_an_encrypted_thought_goes_back_with_what_it_led_to_and_to_nobody_else():
    items = [
        {"role": "user", "content": "Look."},
        A_THOUGHT,
        {"type": "function_call", "call_id": "f", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "f", "output": "def f"},
        A_THOUGHT | {"id": "rs_2", "summary": []},
        {"role": "assistant", "content": "It is there."},
    ]
    told = {"content": [{"type": "reasoning_text", "text": "Where else?"}]}
    messages = [*map(from_openai_responses, [*items[:-2], items[-2] | told, items[-1]])]

    assert list(shown("openai_responses", *messages).messages) == items
    for format in ("openai", "anthropic"):
        assert "gAAAA" not in json.dumps(shown(format, *messages).messages)


def test_the_signature_in_a_call_of_gemini_goes_back_with_it_and_to_no_other_vendor():
    signed = {**CALL, "extra_content": {"google": {"thought_signature": "gAAAA"}}}
    call = {"role": "assistant", "tool_calls": [signed]}
    messages = [*map(from_openai_chat, (PLAIN["openai"][1], call, PLAIN["openai"][3]))]

    rendered = RENDERERS[MessageFormat.OPENAI](items_of(*messages))
    assert rendered.messages[1] == call
    for format in ("openai_responses", "anthropic"):
        assert "gAAAA" not in json.dumps(shown(format, *messages).messages)


@pytest.mark.parametrize(
    "thought",
    [{**A_THOUGHT, "encrypted_content": None}, {key: A_THOUGHT[key] for key in ("type", "summary")},
     {**A_THOUGHT, "encrypted_content": "\ud800"}],
)  # fmt: skip
def test_a_thought_that_cannot_go_back_and_one_that_led_to_nothing_are_left_out(thought):
    led = {"role": "assistant", "content": "It is there."}

    context = shown("openai_responses", *map(from_openai_responses, [thought, led, A_THOUGHT]))

    assert list(context.messages) == [led]
    assert set(repaired(context)[RepairKind.DROPPED_EMPTY]) == {"msg_1", "msg_3"}


def test_what_is_said_behind_a_call_is_said_before_it():
    call = NewPart(PartType.TOOL, tool_call_id="c", tool_name="read", tool_input={})
    words = [NewPart(PartType.TEXT, text_content=text) for text in ("One.", "Two.", "Three.")]
    parts = (words[0], call, words[1], replace(call, tool_call_id="d"), words[2])

    context = shown("openai_responses", NewMessage(Role.ASSISTANT, parts=parts))

    assert [item.get("content", item.get("call_id")) for item in context.messages] == [
        *("One.", "Two.", "Three."),
        *("c", "d", "c", "d"),
    ]
    assert set(context.sources) == {("msg_1",)}


def test_a_tools_picture_is_shown_where_the_api_takes_one():
    picture = NewPart(PartType.FILE, file_mime="image/png", file_url=PNG, file_name="boat.png")
    call, result = a_tool_call("c", "shot"), a_tool_result("c", "Here.")
    messages = (call, replace(result, parts=(*result.parts, picture)))

    by_responses, by_chat = shown("openai_responses", *messages), shown("openai", *messages)

    assert by_responses.messages[1]["output"] == [
        {"type": "input_text", "text": "Here."},
        {"type": "input_image", "image_url": PNG, "detail": "auto"},
    ]
    assert "[image boat.png]" in json.dumps(by_chat.messages[1])


@pytest.mark.parametrize(
    ("part", "piece"),
    [
        (NewPart(PartType.FILE, file_mime="application/pdf", file_url="data:application/pdf;base64,JVBE"),
         {"type": "input_file", "filename": "file", "file_data": "data:application/pdf;base64,JVBE"}),
        (NewPart(PartType.FILE, file_name="a.pdf", file_url="https://example.org/a.pdf"),
         {"type": "input_file", "file_url": "https://example.org/a.pdf"}),
    ],
)  # fmt: skip
def test_a_document_is_a_file_for_openais_responses_api(part, piece):
    context = shown("openai_responses", NewMessage(Role.USER, parts=(part,)))

    assert context.messages[0]["content"] == [piece]


def test_an_image_is_shown_where_the_api_takes_one_and_named_where_not():
    image = NewPart(PartType.FILE, file_mime="image/png", file_url=PNG, file_name="boat.png")
    messages = (NewMessage(Role.USER, parts=(image,)), NewMessage(Role.ASSISTANT, parts=(image,)))

    by_openai, by_anthropic = shown("openai", *messages), shown("anthropic", *messages)

    assert by_openai.messages[0]["content"] == [{"type": "image_url", "image_url": {"url": PNG}}]
    assert by_anthropic.messages[0]["content"] == [PICTURE]
    for context in (by_openai, by_anthropic):
        assert "[image boat.png]" in json.dumps(context.messages[1])
        assert repaired(context) == {RepairKind.ATTACHMENT_AS_TEXT: ("msg_2",)}


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_a_call_that_the_vendor_ran_itself_is_a_repair(kind):
    call = {"type": kind, "id": "srvtoolu_1", "name": "web_search", "input": {"query": "boats"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    message = from_anthropic(of_blocks(call, found, {"type": "text", "text": "None."}, role="assistant"))

    context = shown("anthropic", user("Which boats?"), message)

    assert context.messages[1]["content"] == [{**call, "type": "tool_use"}]
    assert repaired(context) == {RepairKind.SERVER_CALL: ("msg_2",)}


def test_the_time_to_render_a_message_grows_with_its_calls_and_texts(format):
    def seconds(count: int) -> float:
        calls = [part for n in range(count) for part in a_tool_call(f"call_{n}").parts]
        results = [part for n in reversed(range(count)) for part in a_tool_result(f"call_{n}", f"file {n}").parts]
        texts = [NewPart(PartType.TEXT, text_content=f"line {n}") for n in range(count)]
        answer = NewMessage(Role.ASSISTANT, parts=(*texts, *calls))
        items = items_of(user("Read all."), answer, NewMessage(Role.TOOL, parts=tuple(results)))
        # What the collector takes depends on what other tests have left.
        gc.disable()
        began = time.thread_time()
        rendered = RENDERERS[MessageFormat(format)](items)
        taken = time.thread_time() - began
        gc.enable()
        assert json.dumps(rendered.messages).count("file ") == count
        return taken

    # Four times as many take four times as long, and not sixteen times.
    assert min(seconds(4000) for _ in range(2)) < 7 * min(seconds(1000) for _ in range(3))


def test_an_attachment_that_no_api_takes_is_named():
    film = NewPart(PartType.FILE, file_mime="video/mp4", file_url="file:///a.mp4", text_content="a boat")

    for format in CHECKS:
        context = shown(format, NewMessage(Role.USER, parts=(film,)))

        assert "[video: a boat]" in json.dumps(context.messages)


def test_names_are_kept_where_the_api_has_them():
    context = shown("openai", user("Hi.", author="ada"), user("Ho.", author="Ada Lovelace"))

    assert [message.get("name") for message in context.messages] == ["ada", None]
    assert repaired(context) == {RepairKind.DROPPED_NAME: ("msg_2",)}
    for format in ("anthropic", "openai_responses"):
        assert repaired(shown(format, user("Hi.", author="ada")))[RepairKind.DROPPED_NAME] == ("msg_1",)


def test_a_summary_is_a_users_text(format):
    element = '<summary id="sum_1">a &lt; b</summary>'
    summary = replace(items_of(user(element))[0], id="sum_1", kind=ContextItemType.SUMMARY)

    rendered = RENDERERS[MessageFormat(format)]([summary, *items_of(assistant("Hi."))])

    content = rendered.messages[0]["content"]
    assert (content if isinstance(content, str) else content[0]["text"]) == element
    assert (rendered.messages[0]["role"], rendered.sources[0]) == ("user", ("sum_1",))


@pytest.mark.django_db
@pytest.mark.parametrize("format", MessageFormat)
def test_until_the_next_compaction_all_that_was_shown_stays_byte_for_byte(format):
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 31))).conversation_id
    a_summary_of(a_store(), conversation_id, seqs=range(1, 11))
    assembler = ContextAssembler.from_settings(Scope(a_workspace().pk))
    shown_before: list[str] = []

    for n in range(3):
        messages = [*EXCHANGE, assistant(f"It is short, {n}.")]
        say(conversation_id, *messages)
        context = assembler.assemble(conversation_id=conversation_id, format=format)
        now_shown = [as_ascii_json(message) for message in context.messages]

        assert now_shown[: len(shown_before)] == shown_before
        assert len(now_shown) > len(shown_before)
        shown_before = now_shown


def test_many_calls_of_one_id_are_told_apart():
    exchanges = [EXCHANGE[1], EXCHANGE[2]] * 150

    context = shown("anthropic", user("Read."), *exchanges)

    ids = {message["content"][0]["id"] for message in context.messages if message["role"] == "assistant"}
    assert len(ids) == 150
    assert "call_1_150" in ids
