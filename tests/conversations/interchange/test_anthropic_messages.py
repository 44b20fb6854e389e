from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from conversations.formats.anthropic import from_anthropic, signed_thought, to_anthropic
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.real_data import DATA, needs_data
from tests.conversations.records import as_stored

CALL = {"type": "tool_use", "id": "toolu_1", "name": "grep", "input": {"pattern": "def "}}
THOUGHT = {"type": "thinking", "thinking": "Where is it?", "signature": "EqQB"}
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBO"}}


def said(*blocks: dict[str, Any], role: str = "user") -> dict[str, Any]:
    return {"role": role, "content": list(blocks)}


def an_answer(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "toolu_1", "content": content, **more}


def round_trip(row: dict[str, Any]) -> dict[str, Any]:
    return to_anthropic(as_stored(from_anthropic(row)))


def test_a_plain_text_needs_no_parts():
    assert from_anthropic({"role": "user", "content": "hello"}) == NewMessage(Role.USER, "hello")


def test_thoughts_words_and_calls_land_in_their_columns():
    message = from_anthropic(said(THOUGHT, {"type": "text", "text": "Let me look."}, CALL, role="assistant"))

    thought, words, call = message.parts
    assert (thought.part_type, thought.text_content) == (PartType.REASONING, "Where is it?")
    assert words == NewPart(PartType.TEXT, text_content="Let me look.")
    assert call == NewPart(
        PartType.TOOL,
        tool_call_id="toolu_1",
        tool_name="grep",
        tool_input={"pattern": "def "},
        tool_status="pending",
    )
    assert as_stored(message).content == 'Let me look.\n[tool_call grep] {"pattern": "def "}'


def test_a_message_of_results_alone_is_a_tools():
    message = from_anthropic(said(an_answer("3 matches"), an_answer("no such file", is_error=True)))

    assert message.role is Role.TOOL
    assert [(part.tool_output, part.tool_error, part.tool_status) for part in message.parts] == [
        ("3 matches", None, "completed"),
        (None, "no such file", "error"),
    ]


def test_a_message_with_other_words_beside_results_is_a_users():
    row = said(an_answer("3 matches"), {"type": "text", "text": "And now the tests."})

    assert from_anthropic(row).role is Role.USER
    assert round_trip(row) == row


def test_what_a_result_shows_beside_its_words_stands_beside_them():
    row = said(an_answer([PICTURE, {"type": "text", "text": "the page"}]), an_answer([]))

    parts = from_anthropic(row).parts

    assert [part.part_type for part in parts] == [PartType.TOOL, PartType.FILE, PartType.TOOL, PartType.TOOL]
    assert [part.tool_output for part in parts] == ["", None, "the page", ""]
    assert round_trip(row) == row


def test_pictures_and_documents_become_file_parts_and_the_text_of_a_document_is_said():
    link = {"type": "document", "title": "Rules", "source": {"type": "url", "url": "https://example.org/rules.pdf"}}
    text = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "No running."}}
    row = said(PICTURE, link, text)

    picture, document, words = from_anthropic(row).parts

    assert (picture.file_mime, picture.file_url) == ("image/png", "data:image/png;base64,iVBO")
    assert (document.file_name, document.file_url) == ("Rules", "https://example.org/rules.pdf")
    assert words.text_content == "No running."
    assert round_trip(row) == row


def test_what_comes_back_exactly_is_not_kept_twice():
    row = said(PICTURE, an_answer([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), CALL)

    message = from_anthropic(row)

    assert message.metadata == {}
    assert [part.metadata for part in message.parts] == [None, {"anthropic_pieces": 2}, None, None]


def test_what_the_vendors_own_tools_found_is_said():
    found = {"type": "web_search_result", "title": "Boats", "url": "https://example.org", "encrypted_content": "Abc"}
    row = said(
        {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "boats"}},
        {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [found]},
        {"type": "web_search_tool_result", "tool_use_id": "srv_2", "content": {"error_code": "too_many_requests"}},
        role="assistant",
    )

    call, result, failure = from_anthropic(row).parts

    assert (call.tool_name, call.tool_call_id) == ("web_search", "srv_1")
    assert (result.tool_output, result.tool_call_id) == ("Boats\nhttps://example.org", "srv_1")
    assert failure.tool_output == "too_many_requests"
    assert round_trip(row) == row


def test_an_answer_of_the_api_is_kept_with_everything_that_it_says():
    row = said({"type": "text", "text": "Hi.", "citations": None}, role="assistant") | {
        "id": "msg_01",
        "type": "message",
        "model": "some-model",
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 0},
    }

    assert round_trip(row) == row


@pytest.mark.parametrize("thought", [THOUGHT, {"type": "redacted_thinking", "data": "EmwK"}])
def test_a_signed_thought_can_be_given_back_as_it_was(thought):
    [part] = from_anthropic(said(thought, role="assistant")).parts

    assert signed_thought(part) == thought


@pytest.mark.parametrize(
    "part",
    [
        NewPart(PartType.REASONING, text_content="hmm"),
        NewPart(PartType.REASONING, text_content="hmm", metadata={"anthropic": {"add": {"type": "text"}}}),
        NewPart(PartType.TEXT, text_content="hmm", metadata={"anthropic": {"add": {"signature": "EqQB"}}}),
        from_anthropic(said({"type": "thinking", "thinking": "hmm", "signature": 5}, role="assistant")).parts[0],
    ],
    ids=["unsigned", "something else", "no thought", "not a signature"],
)
def test_any_other_thought_cannot(part):
    assert signed_thought(part) is None


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ({"role": "tool", "content": "x"}, "role must be one of user, assistant, system, not 'tool'."),
        ({"role": "user"}, "content must be a text or a list, not null."),
        ({"role": "user", "content": {"text": "x"}}, "content must be a text or a list, not an object."),
        ({"role": "user", "content": ["x"]}, "content[0] must be an object, not a text."),
        (said({"type": 5}), "content[0].type must be a text, not a whole number."),
        (said({"type": "text"}), "content[0].text must be given."),
        (said(an_answer(["x"])), "content[0].content[0] must be an object, not a text."),
        (said(an_answer([{"type": "text", "text": 5}])), "content[0].content[0].text must be a text"),
        (said(an_answer("x", is_error="no")), "content[0].is_error must be true or false, not a text."),
        (said({"type": "image", "source": "x"}), "content[0].source must be an object, not a text."),
        (said({**CALL, "name": 5}), "content[0].name must be a text, not a whole number."),
    ],
)
def test_a_malformed_row_is_refused_with_the_name_of_its_field(row, sentence):
    with pytest.raises(ValueError) as refusal:
        from_anthropic(row)

    assert str(refusal.value).startswith(sentence)


def test_a_message_of_another_form_becomes_the_nearest_message():
    parts = (
        NewPart(PartType.TEXT, text_content="Let me look."),
        NewPart(PartType.PATCH, patch_files=("a.py",)),
        NewPart(PartType.TOOL, tool_call_id="1", tool_name="grep", tool_input={"q": "x"}),
        NewPart(PartType.COMPACTION, text_content="{}", is_synthetic=True, is_ignored=True),
    )

    row = to_anthropic(as_stored(NewMessage(Role.ASSISTANT, parts=parts)))

    assert row == said(
        {"type": "text", "text": "Let me look."},
        {"type": "text", "text": "[patch a.py]"},
        {"type": "tool_use", "id": "1", "name": "grep", "input": {"q": "x"}},
        role="assistant",
    )


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_odd = st.dictionaries(st.sampled_from(["cache_control", "index", "add", "anthropic", "citations"]), _json, max_size=2)
_maybe_text = st.none() | st.text()


def _objects(fields: dict[str, Any], optional: dict[str, Any] | None = None) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda odd, known: odd | known, _odd, st.fixed_dictionaries(fields, optional=optional or {}))


def _of_type(*types: str) -> st.SearchStrategy[str]:
    return st.sampled_from(types)


_sources = _objects(
    {"type": _of_type("base64", "url", "text", "file", "content")},
    {"media_type": _maybe_text, "data": _maybe_text, "url": _maybe_text, "file_id": _json, "content": _json},
)
_attachments = _objects(
    {"type": _of_type("image", "document")}, {"source": st.none() | _sources, "title": _json, "context": _json}
)
_texts = _objects({"type": st.just("text"), "text": st.text()})
_strange = _objects({}, {"type": _of_type("hologram", ""), "title": _json})
_answers = _objects(
    {"type": _of_type("tool_result", "mcp_tool_result", "web_search_tool_result")},
    {
        "tool_use_id": _maybe_text,
        "is_error": st.none() | st.booleans(),
        "content": _maybe_text | st.lists(_texts | _attachments | _strange, max_size=3) | _strange,
    },
)
_blocks = st.one_of(
    _texts,
    _attachments,
    _strange,
    _answers,
    _objects({"type": st.just("thinking")}, {"thinking": _maybe_text, "signature": _json}),
    _objects({"type": st.just("redacted_thinking")}, {"data": _json}),
    _objects(
        {"type": _of_type("tool_use", "server_tool_use")}, {"id": _maybe_text, "name": _maybe_text, "input": _json}
    ),
)
_rows = _objects(
    {"role": _of_type("user", "assistant", "system"), "content": st.text() | st.lists(_blocks, max_size=4)}
)


@given(_rows)
@example({"role": "user", "content": []})
@example(said({"type": "text", "text": ""}))
@example(said(an_answer([PICTURE]), an_answer([{"type": "text", "text": ""}], is_error=False), an_answer(None)))
def test_any_row_comes_back_key_for_key(row):
    assert json.dumps(round_trip(row), sort_keys=True) == json.dumps(row, sort_keys=True)


@needs_data
def test_every_real_message_comes_back_key_for_key():
    rows = []
    for file in sorted((DATA / "originals").glob("claude_code_*.jsonl.gz")):
        with gzip.open(file, "rt") as lines:
            rows += [entry["message"] for entry in map(json.loads, lines) if isinstance(entry.get("message"), dict)]

    assert len(rows) > 500
    for row in rows:
        assert round_trip(row) == row
