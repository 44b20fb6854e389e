"""Whatever a row holds, it comes back key for key: rows that chance makes, and real ones."""

from __future__ import annotations

import gzip
import json
import operator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations.formats import TRANSCRIPTS, transcript_of
from conversations.formats.foreign_rows import is_remainder, remainder, restored, split_remainder
from conversations.formats.neutral import from_neutral, to_neutral
from conversations.types import PartRecord, PartType, Role
from tests.conversations.interchange.forms import (
    ANTHROPIC_CALL,
    AT,
    CLAUDE_CODE_LINE,
    PICTURE,
    READ,
    WRITE,
    an_answer,
    comes_back,
    of_blocks,
    round_trip,
)
from tests.conversations.real_data import DATA, conversation_files, needs_data, original_files, rows_of
from tests.conversations.records import as_stored
from tests.conversations.strategies import json_of
from tests.factories import a_conversation, a_store

Rows = st.SearchStrategy[dict[str, Any]]

_json = json_of(st.text(max_size=8))
_short = st.text(max_size=5)
_maybe_text = st.none() | st.text()
# Arguments of calls in any of the usual styles, with numbers that JSON does not have.
_arguments = st.text() | st.builds(
    lambda value, ascii, compact: json.dumps(value, ensure_ascii=ascii, separators=(",", ":") if compact else None),
    st.recursive(st.floats() | _json, lambda inner: st.lists(inner, max_size=3), max_leaves=8),
    st.booleans(),
    st.booleans(),
)
# Keys that mean something somewhere, so that unknown keys meet those that the form knows.
_odd = st.dictionaries(
    st.sampled_from(
        ["cache_control", "index", "add", "drop", "inside", "anthropic", "openai_chat", "citations", "audio", "refused"]
    ),
    _json,
    max_size=2,
)


def _of_type(*types: str) -> st.SearchStrategy[str]:
    return st.sampled_from(types)


def _objects(*types: str, needs: dict[str, Any] | None = None, odd: Any = _odd, **may: Any) -> Rows:
    """Objects of these types, with what they need, what they may have, and odd keys."""
    typed = {"type": _of_type(*types)} if types else {}
    return st.builds(operator.or_, odd, st.fixed_dictionaries(typed | (needs or {}), optional=may))


def _chat_rows() -> Rows:
    function = _objects(name=_maybe_text, arguments=st.none() | _arguments)
    items = st.one_of(
        _objects("text", needs={"text": st.text()}),
        _objects("refusal", needs={"refusal": st.text()}),
        _objects("image_url", image_url=st.none() | _objects(url=_maybe_text, detail=_maybe_text)),
        _objects("input_audio", input_audio=_objects(data=_maybe_text, format=_maybe_text)),
        _objects("file", file=_objects(filename=_maybe_text, file_data=_maybe_text)),
        _objects(type=st.sampled_from([None, "hologram", ""])),
    )
    calls = st.one_of(
        _objects(needs={"function": function}, id=_maybe_text, type=st.just("function")),
        _objects("custom", needs={"custom": _objects(name=_maybe_text, input=_maybe_text)}),
    )
    contents = st.text() | st.lists(items, max_size=3)
    answer = {"content": st.none() | contents, "tool_calls": st.none() | st.lists(calls, max_size=3),
              "refusal": _maybe_text, "function_call": st.none() | function}  # fmt: skip
    asked = {"role": _of_type("user", "system", "developer"), "content": contents}
    returned = {"role": _of_type("tool", "function"), "content": contents}
    return st.one_of(
        _objects(needs={"role": st.just("assistant")}, name=_maybe_text, **answer),
        _objects(needs=asked, name=_maybe_text),
        _objects(needs=returned, name=_maybe_text, tool_call_id=_maybe_text),
    )


def _response_items() -> Rows:
    types = ("input_text", "output_text", "input_image", "input_file", "summary_text", "other")
    pieces = st.fixed_dictionaries(
        {"type": _of_type(*types)},
        optional={"text": _short, "image_url": _short, "filename": _short, "annotations": _json},
    )
    several = st.lists(pieces, max_size=3)
    kinds = ("message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "local_shell_call",
             "mcp_call", "image_generation_call", "shell_call_output", "compaction")  # fmt: skip
    optional = {
        "role": _of_type("user", "assistant", "developer"),
        "content": _short | several,
        "arguments": _short | _json.map(json.dumps),
        "output": several | _json,
        "summary": several,
        **dict.fromkeys(("id", "call_id", "name"), _short),
        **dict.fromkeys(("action", "input", "result", "error", "status"), _json),
    }
    return st.fixed_dictionaries({"type": _of_type(*kinds)}, optional=optional)


def _anthropic_rows() -> Rows:
    fields = {"media_type": _maybe_text, "data": _maybe_text, "url": _maybe_text, "file_id": _json, "content": _json}
    sources = _objects("base64", "url", "text", "file", "content", **fields)
    attachments = _objects("image", "document", source=st.none() | sources, title=_json, context=_json)
    texts = _objects("text", needs={"text": st.text()})
    strange = _objects("hologram", "", title=_json)
    contents = _maybe_text | st.lists(texts | attachments | strange, max_size=3) | strange
    answer = {"tool_use_id": _maybe_text, "is_error": st.none() | st.booleans(), "content": contents}
    blocks = st.one_of(
        texts,
        attachments,
        strange,
        _objects("tool_result", "mcp_tool_result", "web_search_tool_result", **answer),
        _objects("thinking", thinking=_maybe_text, signature=_json),
        _objects("redacted_thinking", data=_json),
        _objects("compaction", content=_maybe_text, encrypted_content=_json),
        _objects("tool_use", "server_tool_use", id=_maybe_text, name=_maybe_text, input=_json),
    )
    contents = st.text() | st.lists(blocks, max_size=4)
    return _objects(needs={"role": _of_type("user", "assistant", "system"), "content": contents})


def _lines_of_pi() -> Rows:
    blocks = st.fixed_dictionaries(
        {"type": _of_type("text", "thinking", "toolCall", "image", "other")},
        optional={**dict.fromkeys(("text", "thinking", "id", "data", "mimeType"), _short), "arguments": _json},
    )
    messages = st.fixed_dictionaries(
        {"role": _of_type("user", "assistant", "toolResult", "bashExecution", "other")},
        optional={
            "content": _short | st.lists(blocks, max_size=3),
            **dict.fromkeys(("toolCallId", "toolName", "command"), _short),
            "isError": st.booleans(),
            "usage": _json,
        },
    )
    line = {"type": st.just("message"), "timestamp": st.just(AT), "message": messages}
    return st.fixed_dictionaries(line, optional={"id": _short, "parentId": _json})


def _neutral_rows() -> Rows:
    forged = st.sampled_from(
        [{}, {"add": {"text": "forged"}}, {"drop": ["text", "role"]}, {"inside": {"role": {"drop": ["a"]}}}]
    )
    odd = st.dictionaries(
        st.sampled_from(["cost", "neutral", "metadata", "add", "drop", "inside", "part_type"]), _json, max_size=3
    )
    metas = st.dictionaries(st.sampled_from(["neutral", "text", "type", "a"]), _json | forged, max_size=3)

    def part(type_: str, **fields: st.SearchStrategy[Any]) -> Rows:
        optional = {key: st.none() | value for key, value in fields.items()}
        return _objects(type_, odd=odd | st.fixed_dictionaries({"neutral": forged}), meta=_json | metas, **optional)

    words = st.text()
    costs = st.decimals(-9999, 9999).map(str) | st.floats(-9, 9)
    parts = st.one_of(
        part("text", text=words, is_synthetic=st.booleans(), text_content=words),
        part("reasoning", text=words),
        part("compaction", text=words, is_ignored=st.just(True)),
        part("tool_call", id=words, name=words, input=_json, tool_status=words, tool_output=words),
        part("tool_result", id=words, text=words, is_error=st.booleans(), tool_error=words, input=_json),
        part("image", mime=words, caption=words, data=_json, url=words, file_mime=words),
        part("tool", tool_input=_json, tool_output=words, tool_name=words),
        part("file", file_mime=_of_type("image/png", "text/plain"), name=words),
        part("patch", patch_files=st.lists(words)),
        part("step_finish", step_cost=costs, step_tokens_in=st.integers()),
    )
    roles = _of_type(*(role.value for role in Role))
    return _objects(
        needs={"session_id": words, "seq": st.integers(0, 9), "role": roles, "content": words},
        parts=st.none() | st.lists(parts, max_size=4),
        created_at=st.none() | st.datetimes(min_value=datetime(2, 1, 1)).map(datetime.isoformat),
        meta=st.none() | metas,
        author=_maybe_text,
        odd=odd,
    )


# Of these, whatever chance makes is a row; of the others, what can be read.
ALL_READABLE = {"neutral": _neutral_rows(), "chat": _chat_rows(), "anthropic": _anthropic_rows()}
SOME_READABLE = {"responses": _response_items(), "pi": _lines_of_pi()}


@pytest.mark.parametrize("form", [*ALL_READABLE, *SOME_READABLE])
def test_whatever_is_read_comes_back_key_for_key(form):
    @given((ALL_READABLE | SOME_READABLE)[form])
    def check(row: dict[str, Any]) -> None:
        try:
            READ[form](row)
        except ValueError:
            assert form in SOME_READABLE
            return
        assert comes_back(form, row)

    check()


ANSWERS = (an_answer([PICTURE]), an_answer([{"type": "text", "text": ""}], is_error=False), an_answer(None))


@pytest.mark.parametrize(
    ("form", "row"),
    [
        ("chat", of_blocks({"type": "text", "text": "a"})),
        ("chat", of_blocks({"type": "text", "text": "a"}, {"type": "image_url"}, role="tool") | {"tool_call_id": "1"}),
        ("chat", {"role": "user", "name": "n" * 501, "content": ""}),
        ("anthropic", of_blocks()),
        ("anthropic", of_blocks({"type": "text", "text": ""})),
        ("anthropic", of_blocks(*ANSWERS)),
    ],
)
def test_a_row_that_is_odd_comes_back_key_for_key(form, row):
    assert comes_back(form, row)


@needs_data
def test_every_real_message_of_openai_comes_back_key_for_key():
    """Those of Anthropic and of the Responses API are in the lines of Claude Code and Codex."""
    with gzip.open(DATA / "originals" / "tau_bench__gpt-4o-airline.json.gz", "rt") as file:
        rows = [row for task in json.load(file) for row in task["traj"]]

    assert len(rows) > 1000
    for row in rows:
        assert round_trip("chat", row) == row


@needs_data
@pytest.mark.parametrize("agent", ["claude_code", "codex", "pi"])
def test_every_line_of_a_real_session_is_known_and_comes_back_key_for_key(agent):
    transcript = TRANSCRIPTS[["claude_code", "codex", "pi"].index(agent)]
    lines = [line for file in original_files(agent) for line in rows_of(file)]

    assert {transcript_of(line) for line in lines} == {transcript}
    given = [(line, message) for line in lines if (message := transcript.message_of(line))]
    assert len(given) > 500
    for line, message in given:
        assert WRITE[agent](as_stored(message)) == line


@pytest.mark.sampled(2)
@needs_data
@pytest.mark.parametrize("file", conversation_files(), ids=lambda file: file.name.split(".")[0])
def test_every_real_neutral_row_comes_back_key_for_key(file: Path):
    for row in rows_of(file):
        assert round_trip("neutral", row) == row


@needs_data
@pytest.mark.django_db
def test_a_real_conversation_comes_back_from_the_store_key_for_key():
    file = next(file for file in conversation_files() if file.name.startswith("cc_ccl_0d3a8e6f"))
    rows = list(rows_of(file))
    conversation, store = a_conversation(), a_store()

    store.append_messages(conversation_id=conversation.conversation_id, messages=[from_neutral(row) for row in rows])

    stored = store.list_messages(conversation_id=conversation.conversation_id, limit=len(rows) + 1)
    session_id, first_seq = rows[0]["session_id"], rows[0]["seq"]
    assert [to_neutral(record, session_id=session_id, first_seq=first_seq) for record in stored] == rows


COMPACTION_OF_THE_API = {"role": "assistant", "content": [{"type": "compaction", "content": "The port is 5433."}]}


@pytest.mark.parametrize(
    ("form", "row"),
    [
        ("chat", {"role": "assistant", "content": "It is 5433."}),
        ("responses", {"role": "assistant", "content": "It is 5433."}),
        ("responses", {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"}),
        ("anthropic", {"role": "assistant", "content": "It is 5433."}),
        ("codex", {"timestamp": AT, "type": "response_item", "payload": {"role": "user", "content": "Which port?"}}),
        ("pi", {"type": "message", "timestamp": AT, "message": {"role": "user", "content": "Which port?"}}),
        ("claude_code", CLAUDE_CODE_LINE),
        ("claude_code", CLAUDE_CODE_LINE | {"isCompactSummary": True}),
        ("claude_code", CLAUDE_CODE_LINE | {"isCompactSummary": True, "message": of_blocks(ANTHROPIC_CALL)}),
        ("claude_code", CLAUDE_CODE_LINE | {"type": "assistant", "message": COMPACTION_OF_THE_API}),
    ],
)
def test_a_message_on_which_compaction_made_a_note_comes_back_as_it_came(form, row):
    record = as_stored(READ[form](row))
    note = PartRecord(
        part_type=PartType.COMPACTION, is_synthetic=True, is_ignored=True, ordinal=len(record.parts), message_id=1
    )

    written = WRITE[form](replace(record, parts=(*record.parts, note)))

    assert written == row


_values = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 0.0, 1.0, "", "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
_objects = st.dictionaries(st.sampled_from(["a", "b", "c", "add"]), _values, max_size=4)


@given(_objects, _objects)
def test_a_plain_form_and_its_remainder_make_the_row_again(row, plain):
    rest = remainder(row, plain)

    assert json.dumps(restored(plain, rest), sort_keys=True) == json.dumps(row, sort_keys=True)
    assert rest == {} or is_remainder(rest)


@pytest.mark.parametrize(("one", "other"), [(True, 1), (0, False), (1, 1.0), ([1], [1.0]), ({"a": True}, {"a": 1})])
def test_values_that_json_tells_apart_are_not_the_same(one, other):
    assert remainder({"key": one}, {"key": other}) != {}


@pytest.mark.parametrize("own", [5, {}, {"add": 5}, {"drop": [1]}, {"inside": {"a": 5}}, {"other": {}}])
def test_metadata_that_only_bears_our_name_is_the_callers(own):
    assert split_remainder({"neutral": own}, "neutral") == ({"neutral": own}, {})
