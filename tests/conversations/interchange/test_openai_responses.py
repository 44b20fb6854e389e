from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.formats import Format, detect
from conversations.formats.openai_responses import from_openai_responses, to_openai_responses
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.real_data import needs_data, original_files, rows_of
from tests.conversations.records import as_stored

CALL = {"type": "function_call", "call_id": "call_1", "name": "grep", "arguments": '{"pattern": "def "}'}
RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "3 matches"}
THOUGHT = {
    "type": "reasoning",
    "id": "rs_1",
    "summary": [{"type": "summary_text", "text": "Looking for the parser"}],
    "content": None,
    "encrypted_content": "gAAAA",
}


def round_trip(row: dict[str, Any]) -> dict[str, Any]:
    return to_openai_responses(as_stored(from_openai_responses(row)))


@pytest.mark.parametrize("row", [{"role": "user", "content": "hello"},
                                 {"type": "message", "role": "user", "content": "hello", "id": "msg_1"}])  # fmt: skip
def test_a_plain_text_needs_no_parts(row):
    message = from_openai_responses(row)

    assert (message.role, message.content, message.parts) == (Role.USER, "hello", ())
    assert round_trip(row) == row


def test_what_is_said_in_pieces_lands_in_parts_and_comes_back_with_all_that_is_noted_of_it():
    row = {
        "type": "message",
        "id": "msg_1",
        "status": "completed",
        "role": "assistant",
        "content": [
            {"type": "output_text", "text": "It is 5433.", "annotations": [{"type": "file_citation"}], "logprobs": []},
            {"type": "refusal", "refusal": "No more than that."},
        ],
    }

    message = from_openai_responses(row)

    assert [part.text_content for part in message.parts] == ["It is 5433.", "No more than that."]
    assert as_stored(message).content == "It is 5433.\nNo more than that."
    assert round_trip(row) == row


def test_pictures_and_files_become_file_parts():
    row = {
        "type": "message",
        "role": "user",
        "content": [
            {"type": "input_text", "text": "look"},
            {"type": "input_image", "image_url": "https://example.org/dog.png", "detail": "low"},
            {"type": "input_image", "file_id": "file-1", "detail": "auto"},
            {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBE"},
            {"type": "input_file", "file_url": "https://example.org/a.pdf"},
            {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}},
        ],
    }

    parts = from_openai_responses(row).parts

    assert [part.part_type for part in parts] == [PartType.TEXT, *[PartType.FILE] * 5]
    assert (parts[1].file_url, parts[3].file_name) == ("https://example.org/dog.png", "a.pdf")
    assert round_trip(row) == row


def test_a_call_and_its_result_land_in_their_columns():
    call, result = from_openai_responses(CALL), from_openai_responses(RESULT)

    assert call == NewMessage(
        Role.ASSISTANT,
        parts=(
            NewPart(
                PartType.TOOL,
                tool_call_id="call_1",
                tool_name="grep",
                tool_input={"pattern": "def "},
                tool_status="pending",
            ),
        ),
    )
    assert result == NewMessage(
        Role.TOOL,
        parts=(NewPart(PartType.TOOL, tool_call_id="call_1", tool_output="3 matches", tool_status="completed"),),
    )
    assert (round_trip(CALL), round_trip(RESULT)) == (CALL, RESULT)


@pytest.mark.parametrize("arguments", ['{"a":1}', '{ "a": 1 }', "", "{", "null", '{"\\u00f6":1}'])
def test_arguments_come_back_byte_for_byte(arguments):
    assert round_trip(CALL | {"arguments": arguments}) == CALL | {"arguments": arguments}


def test_a_thought_is_reasoning_and_its_encrypted_form_is_kept():
    row = THOUGHT | {"content": [{"type": "reasoning_text", "text": "The parser reads lines."}]}

    parts = from_openai_responses(row).parts

    assert {part.part_type for part in parts} == {PartType.REASONING}
    assert [part.text_content for part in parts] == ["Looking for the parser", "The parser reads lines."]
    assert round_trip(row) == row
    assert round_trip(THOUGHT) == THOUGHT
    assert round_trip(THOUGHT | {"summary": []}) == THOUGHT | {"summary": []}


@pytest.mark.parametrize(
    ("row", "name", "wanted"),
    [
        ({"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** Begin"}, "apply_patch",
         "*** Begin"),
        ({"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}}, "local_shell",
         {"type": "exec", "command": ["ls"]}),
        ({"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}},
         "web_search", {"type": "search", "query": "x"}),
        ({"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}}, "shell", {"commands": ["ls"]}),
        ({"type": "apply_patch_call", "call_id": "c", "operation": {"type": "delete_file"}}, "apply_patch",
         {"type": "delete_file"}),
        ({"type": "newer_tool_call", "id": "n"}, "newer_tool", None),
    ],
)  # fmt: skip
def test_a_tool_that_the_vendor_has_is_called_by_its_name(row, name, wanted):
    message = from_openai_responses(row)

    [part] = message.parts
    assert (part.tool_name, part.tool_input, part.tool_call_id) == (name, wanted, row.get("call_id") or row["id"])
    assert (part.tool_output, part.tool_error) == (None, None)
    # What is wanted is kept once.
    assert wanted is None or json.dumps(wanted) not in json.dumps(message.metadata)
    assert round_trip(row) == row


@pytest.mark.parametrize(
    ("row", "output", "error"),
    [
        ({"type": "mcp_call", "id": "m", "server_label": "s", "name": "find", "arguments": "{}", "output": "found"},
         "found", None),
        ({"type": "mcp_call", "id": "m", "name": "find", "arguments": "{}", "output": None, "error": "too slow"},
         None, "too slow"),
        ({"type": "code_interpreter_call", "id": "i", "code": "1+1", "outputs": [{"type": "logs", "logs": "2"}]},
         "2", None),
        ({"type": "file_search_call", "id": "f", "queries": ["q"],
          "results": [{"filename": "a.md", "text": "words", "score": 0.5}]}, "a.md\nwords", None),
    ],
)  # fmt: skip
def test_what_came_of_a_vendors_own_tool_is_the_result_of_the_call_it_is_told_in(row, output, error):
    [part] = from_openai_responses(row).parts

    assert (part.tool_output, part.tool_error) == (output, error)
    assert round_trip(row) == row


def test_a_picture_that_was_made_is_a_file():
    row = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0KGgo="}

    [part] = from_openai_responses(row).parts

    assert (part.part_type, part.file_url) == (PartType.FILE, "data:image/png;base64,iVBORw0KGgo=")
    assert round_trip(row) == row


@pytest.mark.parametrize(
    ("output", "texts"),
    [
        ([{"type": "input_text", "text": "one"}], ["one"]),
        ([{"type": "input_text", "text": "one"}, {"type": "input_text", "text": "two"}], ["one", "two"]),
        ([{"type": "input_image", "image_url": "https://example.org/a.png"}], ["", None]),
        ([{"stdout": "out", "stderr": "err", "outcome": {"type": "exit", "exit_code": 0}}], ["out\nerr"]),
        ([], [""]),
        ("", [""]),
        (None, [""]),
        ({"type": "computer_screenshot", "image_url": "https://example.org/a.png"}, [""]),
        ({"content": "no such file", "success": False}, ["no such file"]),
    ],
)
def test_a_result_may_be_a_text_a_list_or_an_object(output, texts):
    row = RESULT | {"output": output}

    message = from_openai_responses(row)

    assert [part.tool_output for part in message.parts] == texts
    assert round_trip(row) == row


@pytest.mark.parametrize("kind", ["custom_tool_call_output", "local_shell_call_output", "shell_call_output"])
def test_results_of_other_kinds_are_results_too(kind):
    row = {"type": kind, "call_id": "c", "output": "done"}

    assert from_openai_responses(row).role is Role.TOOL
    assert round_trip(row) == row


@pytest.mark.parametrize("row", [{"type": "item_reference", "id": "x"},
                                 {"type": "compaction", "encrypted_content": "gAAAA"},
                                 {"type": "ghost_snapshot", "ghost_commit": {"id": "c0ffee"}}])  # fmt: skip
def test_an_item_of_an_unknown_kind_is_kept_and_says_nothing(row):
    message = from_openai_responses(row)

    assert (message.role, message.content, message.parts) == (Role.ASSISTANT, "", ())
    assert round_trip(row) == row


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        (5, "A message must be an object"),
        ({"type": 5}, "type must be a text, not a whole number."),
        ({"role": "tool", "content": "x"}, "role must be one of user, assistant, system, developer"),
        ({"role": "user"}, "content must be a text or a list, not null."),
        ({"role": "user", "content": [5]}, "content[0] must be an object"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "content[0].text must be given."),
        (CALL | {"call_id": 5}, "call_id must be a text"),
        (CALL | {"arguments": {}}, "arguments must be a text, not an object."),
        (THOUGHT | {"summary": "x"}, "summary must be a list, not a text."),
        (THOUGHT | {"summary": [{"text": 5}]}, "summary[0].text must be a text"),
        (RESULT | {"output": ["x"]}, "output[0] must be an object, not a text."),
    ],
)
def test_a_malformed_item_is_refused_with_the_name_of_its_field(row, sentence):
    with pytest.raises(ValueError) as refusal:
        from_openai_responses(row)

    assert str(refusal.value).startswith(sentence)


@pytest.mark.parametrize(
    "parts",
    [
        (NewPart(PartType.TOOL, tool_call_id="1", tool_input={}), NewPart(PartType.TOOL, tool_call_id="2")),
        (NewPart(PartType.TEXT, text_content="look"), NewPart(PartType.TOOL, tool_call_id="1", tool_input={})),
    ],
)
def test_a_message_of_another_form_that_takes_several_items_says_so(parts):
    with pytest.raises(ValueError, match="an item holds one"):
        to_openai_responses(as_stored(NewMessage(Role.ASSISTANT, parts=parts)))


@pytest.mark.parametrize("row", [CALL, RESULT, THOUGHT, {"type": "local_shell_call"}, {
    "role": "user", "content": [{"type": "input_text", "text": "x"}]}])  # fmt: skip
def test_an_item_tells_its_format(row):
    assert detect(row) is Format.OPENAI_RESPONSES


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
pieces = st.fixed_dictionaries(
    {"type": st.sampled_from(["input_text", "output_text", "input_image", "input_file", "summary_text", "other"])},
    optional={"text": st.text(max_size=5), "image_url": st.text(max_size=5), "filename": st.text(max_size=5),
              "annotations": values},
)  # fmt: skip
items = st.fixed_dictionaries(
    {"type": st.sampled_from([
        "message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "local_shell_call",
        "mcp_call", "image_generation_call", "shell_call_output", "compaction"])},
    optional={"role": st.sampled_from(["user", "assistant", "developer"]), "id": st.text(max_size=5),
              "content": st.text(max_size=5) | st.lists(pieces, max_size=3), "call_id": st.text(max_size=5),
              "name": st.text(max_size=5), "arguments": st.text(max_size=5) | values.map(json.dumps),
              "output": st.lists(pieces, max_size=3) | values, "summary": st.lists(pieces, max_size=3),
              "action": values, "input": values, "result": values, "error": values, "status": values},
)  # fmt: skip


@given(items)
def test_whatever_is_read_comes_back(row):
    try:
        message = from_openai_responses(row)
    except ValueError:
        return

    assert json.dumps(to_openai_responses(as_stored(message)), sort_keys=True) == json.dumps(row, sort_keys=True)


@needs_data
def test_every_item_of_a_real_session_comes_back_key_for_key():
    lines = [line for file in original_files("codex") for line in rows_of(file)]
    found = [line["payload"] for line in lines if line["type"] == "response_item"]

    assert len(found) > 500
    for row in found:
        assert round_trip(row) == row
