"""Where the pieces of a row are stored; every row here comes back key for key."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from conversations.formats.neutral import to_neutral
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.appending import full_part
from tests.conversations.interchange.forms import (
    ANTHROPIC_CALL,
    ANTHROPIC_THOUGHT,
    AT,
    CLAUDE_CODE_LINE,
    CODEX_LINE,
    PI_LINE,
    PICTURE,
    READ,
    RESPONSES_CALL,
    RESPONSES_RESULT,
    RESPONSES_THOUGHT,
    WRITE,
    a_chat_call,
    a_neutral,
    a_pi_result,
    an_answer,
    columns_of,
    comes_back,
    of_blocks,
    of_codex,
    of_pi,
)
from tests.conversations.records import as_stored

Columns = dict[str, Any]


def text(content: str) -> Columns:
    return {"part_type": "text", "text_content": content}


def reasoning(content: str) -> Columns:
    return {"part_type": "reasoning", "text_content": content}


def call(call_id: str, name: str, **more: Any) -> Columns:
    return {"part_type": "tool", "tool_call_id": call_id, "tool_name": name, "tool_status": "pending", **more}


def result(call_id: str | None, output: str, **more: Any) -> Columns:
    named = {} if call_id is None else {"tool_call_id": call_id}
    return {"part_type": "tool", **named, "tool_status": "completed", "tool_output": output, **more}


def failure(call_id: str, error: str, **more: Any) -> Columns:
    return {"part_type": "tool", "tool_call_id": call_id, "tool_status": "error", "tool_error": error, **more}


def file(**columns: Any) -> Columns:
    return {"part_type": "file", **columns}


GREP: Any = {"tool_input": {"pattern": "def "}}
PNG = "data:image/png;base64,iVBO"
FOUND = {"type": "web_search_result", "title": "Boats", "url": "https://example.org", "encrypted_content": "Abc"}
# By format: a row, and what it is in the store, its role and the columns of its parts.
ROWS: dict[str, dict[str, tuple[dict[str, Any], list[Any]]]] = {
    "neutral": {
        "neutral tools": (
            a_neutral(
                parts=[
                    {"type": "tool_call", "id": "1", "name": "grep", "input": {"pattern": "def "}},
                    {"type": "tool_result", "id": "1", "text": "3 matches", "is_error": False},
                    {"type": "tool_result", "id": "2", "text": "no such file", "is_error": True},
                ]
            ),
            [Role.USER, call("1", "grep", **GREP), result("1", "3 matches"), failure("2", "no such file")],
        )
    },
    "chat": {
        "a chat call": (a_chat_call('{"pattern": "def "}'), [Role.ASSISTANT, call("call_1", "grep", **GREP)]),
        "a chat call of old": (
            {"role": "assistant", "content": None, "function_call": {"name": "grep", "arguments": "{}"}},
            [Role.ASSISTANT, {"part_type": "tool", "tool_name": "grep", "tool_input": {}, "tool_status": "pending"}],
        ),
        "a chat result": (
            {"role": "tool", "tool_call_id": "call_1", "content": "3 matches"},
            [Role.TOOL, result("call_1", "3 matches")],
        ),
        "a developer": ({"role": "developer", "content": "be brief", "name": "rules"}, [Role.SYSTEM]),
        "a function": (
            {"role": "function", "content": "be brief", "name": "rules"},
            [Role.TOOL, result(None, "be brief", tool_name="rules")],
        ),
        "a refusal": (
            {"role": "assistant", "content": None, "refusal": "I will not."},
            [Role.ASSISTANT, text("I will not.")],
        ),
        "chat pieces": (
            of_blocks(
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "https://example.org/dog.png", "detail": "low"}},
                {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
                {"type": "file", "file": {"filename": "a.pdf", "file_id": "file-1"}},
            ),
            [
                Role.USER,
                text("look"),
                file(file_url="https://example.org/dog.png", file_mime="image/*"),
                file(file_url="data:audio/wav;base64,UklG", file_mime="audio/wav"),
                file(file_name="a.pdf"),
            ],
        ),
    },
    "responses": {
        "an output": (
            {"type": "message", "id": "msg_1", "status": "completed"}
            | of_blocks(
                {
                    "type": "output_text",
                    "text": "It is 5433.",
                    "annotations": [{"type": "file_citation"}],
                    "logprobs": [],
                },
                {"type": "refusal", "refusal": "No more than that."},
                role="assistant",
            ),
            [Role.ASSISTANT, text("It is 5433."), text("No more than that.")],
        ),
        "input pieces": (
            {"type": "message"}
            | of_blocks(
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "https://example.org/dog.png", "detail": "low"},
                {"type": "input_image", "file_id": "file-1", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
                {"type": "input_file", "file_url": "https://example.org/a.pdf"},
                {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
            ),
            [
                Role.USER,
                text("look"),
                file(file_url="https://example.org/dog.png", file_mime="image/*"),
                file(file_mime="image/*"),
                file(file_name="a.pdf", file_url="data:application/pdf;base64,JVBE"),
                file(file_url="https://example.org/a.pdf"),
                file(),
            ],
        ),
        "an item call": (RESPONSES_CALL, [Role.ASSISTANT, call("call_1", "grep", **GREP)]),
        "a custom call": (
            {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"},
            [Role.ASSISTANT, call("c", "apply_patch", tool_input="*** Begin")],
        ),
        "a shell call": (
            {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
            [Role.ASSISTANT, call("c", "local_shell", tool_input={"command": ["ls"]})],
        ),
        "a search": (
            {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "x"}},
            [Role.ASSISTANT, call("ws_1", "web_search", tool_input={"query": "x"})],
        ),
        "a patch": (
            {"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}},
            [Role.ASSISTANT, call("c", "apply_patch", tool_input={"type": "delete_file"})],
        ),
        "a call of a newer tool": ({"type": "newer_tool_call", "id": "n"}, [Role.ASSISTANT, call("n", "newer_tool")]),
        "a call with its result": (
            {"type": "mcp_call", "id": "m", "server_label": "s", "name": "find", "arguments": "{}", "output": "found"},
            [Role.ASSISTANT, result("m", "found", tool_name="find", tool_input={})],
        ),
        "a call with its failure": (
            {"type": "mcp_call", "id": "m", "name": "find", "arguments": "{}", "output": None, "error": "too slow"},
            [Role.ASSISTANT, failure("m", "too slow", tool_name="find", tool_input={})],
        ),
        "code and its logs": (
            {"type": "code_interpreter_call", "id": "i", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
            [Role.ASSISTANT, result("i", "2", tool_name="code_interpreter", tool_input="1+1")],
        ),
        "files that were found": (
            {"type": "file_search_call", "id": "f", "queries": ["q"], "results": [{"filename": "a.md", "text": "x"}]},
            [Role.ASSISTANT, result("f", "a.md\nx", tool_name="file_search", tool_input=["q"])],
        ),
        "an item result": (RESPONSES_RESULT, [Role.TOOL, result("call_1", "3 matches")]),
        "a thought": (
            RESPONSES_THOUGHT | {"content": [{"type": "reasoning_text", "text": "The parser reads lines."}]},
            [Role.ASSISTANT, reasoning("Looking for the parser"), reasoning("The parser reads lines.")],
        ),
        "a thought without text": (RESPONSES_THOUGHT | {"summary": []}, [Role.ASSISTANT, {"part_type": "reasoning"}]),
        "a picture made": (
            {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBO"},
            [Role.ASSISTANT, file(file_mime="image/png", file_url=PNG)],
        ),
    },
    "anthropic": {
        "blocks of an answer": (
            of_blocks(ANTHROPIC_THOUGHT, {"type": "text", "text": "Let me look."}, ANTHROPIC_CALL, role="assistant"),
            [Role.ASSISTANT, reasoning("Where is it?"), text("Let me look."), call("toolu_1", "grep", **GREP)],
        ),
        "blocks of results": (
            of_blocks(an_answer("3 matches"), an_answer("no such file", is_error=True)),
            [Role.TOOL, result("toolu_1", "3 matches"), failure("toolu_1", "no such file")],
        ),
        "results beside words": (
            of_blocks(an_answer("3 matches"), {"type": "text", "text": "And now the tests."}),
            [Role.USER, result("toolu_1", "3 matches"), text("And now the tests.")],
        ),
        "results with pictures": (
            of_blocks(an_answer([PICTURE, {"type": "text", "text": "the page"}]), an_answer([])),
            [
                Role.TOOL,
                result("toolu_1", ""),
                file(file_mime="image/png", file_url=PNG),
                result("toolu_1", "the page"),
                result("toolu_1", ""),
            ],
        ),
        "documents": (
            of_blocks(
                {"type": "document", "title": "Rules", "source": {"type": "url", "url": "https://example.org/r.pdf"}},
                {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "No running."}},
            ),
            [
                Role.USER,
                file(file_mime="application/pdf", file_name="Rules", file_url="https://example.org/r.pdf"),
                text("No running."),
            ],
        ),
        "the vendor's own tools": (
            of_blocks(
                {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "boats"}},
                {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [FOUND]},
                {"type": "web_search_tool_result", "tool_use_id": "srv_2", "content": {"error_code": "too_many"}},
                role="assistant",
            ),
            [
                Role.ASSISTANT,
                call("srv_1", "web_search", tool_input={"query": "boats"}),
                result("srv_1", "Boats\nhttps://example.org"),
                result("srv_2", "too_many"),
            ],
        ),
        "an answer with its usage": (
            of_blocks({"type": "text", "text": "Hi.", "citations": None}, role="assistant")
            | {"id": "msg_01", "type": "message", "stop_reason": "end_turn", "usage": {"input_tokens": 3}},
            [Role.ASSISTANT, text("Hi.")],
        ),
    },
    "pi": {
        "a line of pi": (
            of_pi(
                role="assistant",
                content=[
                    {"type": "thinking", "thinking": "hm", "thinkingSignature": "EqQB"},
                    {"type": "text", "text": "I look."},
                    {"type": "toolCall", "id": "t1", "name": "read", "arguments": {"path": "a"}, "partialJson": "{"},
                ],
                usage={"input": 5, "cost": {"total": 0.5}},
                stopReason="toolUse",
            ),
            [Role.ASSISTANT, reasoning("hm"), text("I look."), call("t1", "read", tool_input={"path": "a"})],
        ),
        "a result of pi": (
            a_pi_result([{"type": "text", "text": "def f"}]),
            [Role.TOOL, result("t1", "def f", tool_name="read")],
        ),
        "a failure of pi": (a_pi_result("no", is_error=True), [Role.TOOL, failure("t1", "no", tool_name="read")]),
        "a picture of pi": (
            a_pi_result([{"type": "image", "data": "iVBO", "mimeType": "image/png"}]),
            [Role.TOOL, result("t1", "", tool_name="read"), file(file_mime="image/png", file_url=PNG)],
        ),
        "an empty result of pi": (a_pi_result([]), [Role.TOOL, result("t1", "", tool_name="read")]),
        "a summary of pi": (
            {"type": "compaction", "timestamp": AT, "summary": "So far: a.py.", "tokensBefore": 9000},
            [Role.ASSISTANT, {"part_type": "compaction", "text_content": "So far: a.py."}],
        ),
    },
    "codex": {
        "a summary of codex": (
            {"timestamp": AT, "type": "compacted", "payload": {"message": "So far.", "replacement_history": [1]}},
            [Role.ASSISTANT, {"part_type": "compaction", "text_content": "So far."}],
        )
    },
}


@pytest.mark.parametrize(("form", "name"), [(form, name) for form, rows in ROWS.items() for name in rows])
def test_a_row_lands_in_its_columns_and_comes_back(form, name):
    row, expected = ROWS[form][name]

    message = READ[form](row)

    assert [message.role, *map(columns_of, message.parts)] == expected
    assert comes_back(form, row)


@pytest.mark.parametrize(("form", "line"), [("claude_code", CLAUDE_CODE_LINE), ("codex", CODEX_LINE), ("pi", PI_LINE)])
def test_a_line_of_a_transcript_is_its_message_at_its_time(form, line):
    message = READ[form](line)

    assert (message.role, as_stored(message).content) == (Role.USER, "Read a.py.")
    assert message.created_at == datetime(2026, 1, 31, 12, 0, 0, 46_000, tzinfo=UTC)
    assert comes_back(form, line)


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize(
    ("text", "more", "is_added"),
    [
        ("Caveat: DO NOT respond to these messages.", {"isMeta": True}, True),
        ("<local-command-stdout>Compacted</local-command-stdout>", {}, True),
        ("<command-name>/clear</command-name>\n<command-args></command-args>", {}, True),
        ("<command-name>/review</command-name>\n<command-args>the port</command-args>", {}, False),
        ("<task-notification>\n<status>completed</status>\n</task-notification>", {}, True),
        ("What is <local-command-stdout>?", {}, False),
    ],
)
def test_a_text_that_claude_code_wrote_for_the_user_is_synthetic(text, more, is_added, is_list):
    content = [{"type": "text", "text": text}] if is_list else text
    line = CLAUDE_CODE_LINE | {"message": {"role": "user", "content": content}} | more

    message = READ["claude_code"](line)

    assert as_stored(message).content == text
    assert any(part.is_synthetic for part in message.parts) == is_added
    assert comes_back("claude_code", line)


@pytest.mark.parametrize("is_list", [False, True])
@pytest.mark.parametrize(
    ("text", "more", "is_added"),
    [
        ("Also note the green buoy.", {"commandMode": "prompt"}, False),
        ("Look at the buoy.", {"isMeta": True, "origin": {"kind": "unclassified"}}, True),
        ("Look at the buoy.", {"origin": {"kind": "human"}}, False),
        ("Look at the buoy.", {"origin": {"kind": "peer"}}, True),
        ("Continue.", {"origin": {"kind": "auto-continuation"}}, True),
        ("<task-notification>\n<status>completed</status>\n</task-notification>", {}, True),
    ],
)
def test_what_was_sent_while_claude_code_worked_is_a_message_of_the_user(text, more, is_added, is_list):
    prompt = [{"type": "text", "text": text}] if is_list else text
    line = {key: value for key, value in CLAUDE_CODE_LINE.items() if key != "message"}
    line |= {"type": "attachment", "attachment": {"type": "queued_command", "prompt": prompt, **more}}

    message = READ["claude_code"](line)

    assert (message.role, as_stored(message).content) == (Role.USER, text)
    assert any(part.is_synthetic for part in message.parts) == is_added
    assert comes_back("claude_code", line)
    line["attachment"]["carriedByCompaction"] = True
    assert READ["claude_code"](line) is None


@pytest.mark.parametrize(
    ("role", "text", "is_added"),
    [
        ("user", "<environment_context>\n  <cwd>/home/ada/boats</cwd>\n</environment_context>", True),
        ("user", "# AGENTS.md instructions for /boats\n\n<INSTRUCTIONS>\nBe brief.\n</INSTRUCTIONS>", True),
        ("user", "<subagent_notification>\n{}\n</subagent_notification>", True),
        ("user", "# AGENTS.md instructions are too long:\n\nShorten them.", False),
        ("user", "What is <environment_context>?", False),
        ("assistant", "<environment_context> names the directory.", False),
    ],
)
def test_a_text_that_codex_wrote_for_the_user_is_synthetic(role, text, is_added):
    kind = "output_text" if role == "assistant" else "input_text"
    line = of_codex(type="message", role=role, content=[{"type": kind, "text": text}])

    [part] = READ["codex"](line).parts

    assert (part.text_content, bool(part.is_synthetic)) == (text, is_added)
    assert comes_back("codex", line)


@pytest.mark.parametrize(
    ("kind", "origin", "is_added"),
    [
        ("user.text", {"type": "user"}, False),
        ("generic.new", {"type": "harness", "hook": False}, True),
        ("skills.selected", {"type": "skills"}, True),
        ("shell.user_command", {"type": "harness", "hook": False}, False),
        ("generic.new", {"type": "new"}, False),
        ("generic.new", None, False),
    ],
)
def test_codex_notes_which_texts_the_user_wrote(kind, origin, is_added):
    facts = {"content_item_kinds": [kind], "content_item_metadata": [{"provenance": origin}]}
    content = [{"type": "input_text", "text": "<new>Look.</new>"}]
    line = of_codex(type="message", role="user", content=content, internal_chat_message_metadata_passthrough=facts)

    [part] = READ["codex"](line).parts

    assert bool(part.is_synthetic) == is_added
    assert comes_back("codex", line)


def test_codex_notes_the_origin_of_each_text_by_its_place():
    origins = [{"provenance": {"type": each}} for each in ("harness", "user", "harness", "user")]
    facts = {"content_item_kinds": ["generic.new", "user.text", "x.y", "user.text"], "content_item_metadata": origins}
    texts = [{"type": "input_text", "text": text} for text in ("Go on.", "Go on.", "None")]
    content = [*texts[:2], {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}, texts[2]]
    line = of_codex(type="message", role="user", content=content, internal_chat_message_metadata_passthrough=facts)

    assert [bool(part.is_synthetic) for part in READ["codex"](line).parts] == [True, False, False, False]
    assert comes_back("codex", line)


@pytest.mark.parametrize(
    ("line", "content"),
    [
        (of_pi(role="bashExecution", command="ls", output="a.py", exitCode=0), "ls\na.py"),
        (of_pi(role="custom", customType="note", content="Mind the gap.", display=True), "Mind the gap."),
        ({"type": "custom_message", "timestamp": AT, "content": "Mind the gap."}, "Mind the gap."),
        ({"type": "branch_summary", "timestamp": AT, "fromId": "c0ffee", "summary": "It failed."}, "It failed."),
    ],
)
def test_other_texts_for_the_model_of_pi_are_a_users(line, content):
    message = READ["pi"](line)

    assert (message.role, message.content) == (Role.USER, content)
    assert comes_back("pi", line)


@pytest.mark.parametrize(
    ("output", "printed", "error"),
    [
        ('{"output":"a.py\\nb.py\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}', "a.py\nb.py\n", None),
        ('{"output": "a.py", "metadata": {"exit_code": 0}}', "a.py", None),
        ('{"output":"no such file","metadata":{"exit_code":1}}', None, "no such file"),
        ('{"output":"a.py"}', "a.py", None),
        ('{"output":"a.py","metadata":null}', "a.py", None),
        ("failed in sandbox", "failed in sandbox", None),
        ('{ "output": "a.py" }', '{ "output": "a.py" }', None),
        ('{"metadata":{},"output":"a.py"}', '{"metadata":{},"output":"a.py"}', None),
        ('{"output":5}', '{"output":5}', None),
        ('["output"]', '["output"]', None),
        ("{}", "{}", None),
    ],
)
def test_codex_wraps_what_a_command_printed_and_it_is_unwrapped(output, printed, error):
    line = of_codex(type="function_call_output", call_id="c", output=output)

    [part] = READ["codex"](line).parts

    assert (part.tool_output, part.tool_error) == (printed, error)
    assert part.tool_status == ("error" if error else "completed")
    assert comes_back("codex", line)


IN_A_USUAL_STYLE = (
    '{"a":1,"b":[1,2]}', '{"ö": "ü"}', '{"\\u00f6": 1}', '{"\\u00f6":1}', '{"b": 1, "a": 2}', '["x"]', '{"a": 1.5}',
    "{}"
)  # fmt: skip


@pytest.mark.parametrize(
    "arguments",
    [*IN_A_USUAL_STYLE, '{ "a": 1 }', '{"a": 1, "a": 2}', '{"a": 1.50}', '{"a": NaN}', '{"a": 1e400}', "", "{", "null",
     '"text"', "5", "[" * 100_000, '{"a": %s}' % ("9" * 5000)],
    ids=range(20),
)  # fmt: skip
def test_arguments_in_a_usual_style_are_kept_as_json_all_others_as_they_are_written_and_all_come_back(arguments):
    kept = json.loads(arguments) if arguments in IN_A_USUAL_STYLE else arguments
    assert READ["chat"](a_chat_call(arguments)).parts[0].tool_input == kept
    assert comes_back("chat", a_chat_call(arguments))
    assert comes_back("responses", RESPONSES_CALL | {"arguments": arguments})


@pytest.mark.parametrize(
    ("output", "texts"),
    [
        ([{"type": "input_text", "text": "one"}], ["one"]),
        ([{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}], ["one", "two"]),
        ([{"type": "input_image", "image_url": "https://example.org/a.png"}], ["", None]),
        ([{"stdout": "out", "stderr": "err", "outcome": {"type": "exit", "exit_code": 0}}], ["out\nerr"]),
        ([], [""]),
        (None, [""]),
        ({"type": "computer_screenshot", "image_url": "https://example.org/a.png"}, [""]),
        ({"content": "no such file", "success": False}, ["no such file"]),
    ],
)
def test_an_output_may_be_a_text_a_list_or_an_object(output, texts):
    row = RESPONSES_RESULT | {"output": output}

    assert [part.tool_output for part in READ["responses"](row).parts] == texts
    assert comes_back("responses", row)


@pytest.mark.parametrize("row", [{"type": "item_reference", "id": "x"},
                                 {"type": "compaction", "encrypted_content": "gAAAA"},
                                 {"type": "ghost_snapshot", "ghost_commit": {"id": "c0ffee"}}])  # fmt: skip
def test_an_item_of_an_unknown_kind_is_kept_without_text(row):
    message = READ["responses"](row)

    assert (message.role, message.content, message.parts) == (Role.ASSISTANT, "", ())
    assert comes_back("responses", row)


@pytest.mark.parametrize(
    ("form", "row", "metadata"),
    [
        ("neutral", a_neutral(), [None]),
        ("chat", of_blocks({"type": "text", "text": "look"}), [{"openai_chat_listed": True}]),
        ("responses", RESPONSES_CALL, [None]),
        (
            "anthropic",
            of_blocks(PICTURE, an_answer([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])),
            [None, {"anthropic_pieces": 2}, None],
        ),
    ],
)
def test_what_the_columns_hold_is_not_kept_twice(form, row, metadata):
    message = READ[form](row)

    assert (message.metadata, [part.metadata for part in message.parts]) == ({}, metadata)
    assert comes_back(form, row)


OTHER_FORM = (
    NewPart(PartType.TEXT, text_content="Let me look."),
    NewPart(PartType.PATCH, patch_files=("a.py",)),
    NewPart(PartType.TOOL, tool_call_id="1", tool_name="grep", tool_input={"q": "x"}),
    NewPart(PartType.COMPACTION, text_content="{}", is_synthetic=True, is_ignored=True),
)
WORDS = [{"type": "text", "text": "Let me look."}, {"type": "text", "text": "[patch a.py]"}]


@pytest.mark.parametrize(
    ("form", "row"),
    [
        (
            "chat",
            of_blocks(*WORDS, role="assistant")
            | {
                "tool_calls": [{"id": "1", "type": "function", "function": {"name": "grep", "arguments": '{"q": "x"}'}}]
            },
        ),
        (
            "anthropic",
            of_blocks(*WORDS, {"type": "tool_use", "id": "1", "name": "grep", "input": {"q": "x"}}, role="assistant"),
        ),
    ],
)
def test_a_message_of_another_form_becomes_the_nearest_message(form, row):
    assert WRITE[form](as_stored(NewMessage(Role.ASSISTANT, parts=OTHER_FORM))) == row


@pytest.mark.parametrize(
    ("form", "role", "parts", "sentence"),
    [
        ("chat", Role.TOOL, [NewPart(PartType.TOOL, tool_call_id=each, tool_output="x") for each in "12"],
         "results of several calls"),
        ("responses", Role.ASSISTANT, [NewPart(PartType.TOOL, tool_call_id=each, tool_input={}) for each in "12"],
         "an item holds one"),
        ("responses", Role.ASSISTANT, OTHER_FORM, "an item holds one"),
    ],
)  # fmt: skip
def test_a_message_that_takes_several_rows_is_refused(form, role, parts, sentence):
    with pytest.raises(ValueError, match=sentence):
        WRITE[form](as_stored(NewMessage(role, parts=tuple(parts))))


def test_author_content_and_metadata_of_a_row_are_those_of_the_message():
    parts = [{"type": "text", "text": "hello"}, {"type": "image", "caption": "a dog"}]

    message = READ["neutral"](a_neutral(content="hello [photo]", parts=parts, meta={"speaker": "Ann"}))

    assert (message.content, message.metadata) == ("hello [photo]", {"speaker": "Ann"})
    assert READ["chat"]({"role": "user", "name": "Ann", "content": "hello"}).author == "Ann"


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2026-01-31T12:00:00Z", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.500Z", datetime(2026, 1, 31, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-01-31T12:00:00+02:00", datetime(2026, 1, 31, 10, tzinfo=UTC)),
        ("2026-01-31T12:00:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.123456789Z", datetime(2026, 1, 31, 12, 0, 0, 123_456, tzinfo=UTC)),
        (None, None),
    ],
)
def test_a_time_is_read_as_an_instant_and_comes_back_as_the_same_text(written, moment):
    row = a_neutral(created_at=written)

    assert READ["neutral"](row).created_at == moment
    assert comes_back("neutral", row)


def test_a_row_counted_from_elsewhere_comes_back_counted_so():
    record = as_stored(READ["neutral"](a_neutral(seq=17)), seq=3)

    assert to_neutral(record, session_id="t", first_seq=15)["seq"] == 17


def test_every_column_of_every_part_type_goes_out_and_comes_in_again():
    parts = tuple(replace(full_part(part_type), metadata={"own": 1}) for part_type in PartType)

    row = to_neutral(as_stored(NewMessage(Role.ASSISTANT, "x", parts)), session_id="s")

    assert READ["neutral"](json.loads(json.dumps(row))).parts == parts


def test_notes_of_compaction_and_metadata_under_our_name():
    parts = (
        NewPart(PartType.TEXT, text_content="hello"),
        NewPart(PartType.COMPACTION, is_synthetic=True, is_ignored=True, text_content="sum_1"),
    )
    own = {"neutral": 5, "add": {"role": 1}}

    row = to_neutral(as_stored(NewMessage(Role.USER, "hello", parts, metadata=own)), session_id="s")

    assert (row["parts"], row["meta"]) == ([{"type": "text", "text": "hello"}], own)
