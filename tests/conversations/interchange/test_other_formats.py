"""LCM's own fields in vendors' formats, messages in the shape of another format, and blocks that no format knows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from conversations.formats import Format, read_message, require_own_format
from conversations.formats.anthropic import to_anthropic
from conversations.formats.openai_chat import to_openai_chat
from conversations.formats.openai_responses import to_openai_responses
from tests.conversations.interchange.forms import of_blocks
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key

CHAT, RESPONSES, ANTHROPIC, NEUTRAL = Format.OPENAI_CHAT, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.NEUTRAL
WRITE = {CHAT: to_openai_chat, RESPONSES: to_openai_responses, ANTHROPIC: to_anthropic}
CALLS = {"role": "assistant", "content": "Look.", "tool_calls": [{"id": "1", "function": {"name": "ls"}}]}
RESULT = {"type": "tool_result", "tool_use_id": "t2", "content": "walrus " * 3}
HOLOGRAM = {
    "type": "hologram",
    "id": "h_1",
    "scene": {"title": "a walrus", "frames": [{"caption": "diving", "data": "AAAA"}], "raw": "iVBO" * 100, "size": 3},
}


@pytest.mark.parametrize(
    ("form", "row", "mark", "other"),
    [
        (CHAT, of_blocks(RESULT), "tool_result", ANTHROPIC),
        (CHAT, of_blocks({"type": "image", "source": {"type": "url", "url": "x"}}), "image", ANTHROPIC),
        (CHAT, of_blocks({"type": "input_text", "text": "x"}), "input_text", RESPONSES),
        (ANTHROPIC, CALLS, "tool_calls", CHAT),
        (ANTHROPIC, {"role": "tool", "tool_call_id": "1", "content": "x"}, "tool_call_id", CHAT),
        (ANTHROPIC, of_blocks({"type": "image_url", "image_url": {"url": "x"}}), "image_url", CHAT),
        (RESPONSES, of_blocks({"type": "tool_use", "id": "1", "name": "ls", "input": {}}), "tool_use", ANTHROPIC),
        (NEUTRAL, CALLS, "tool_calls", CHAT),
    ],
)
def test_an_append_in_the_shape_of_another_vendor_is_refused(db, form, row, mark, other):
    path = f"conversations/{a_conversation().conversation_id}/messages/"

    refused = Api(an_api_key()).post(path, {"format": form, "messages": [row]})

    assert refused.status == 400
    sentence = f'This looks like a message in another format, by its {mark}: use "format": "{other}".'
    assert sentence in str(refused.body["errors"])


@pytest.mark.parametrize(
    ("form", "row"),
    [
        (ANTHROPIC, {"role": "assistant", "content": "x", "tool_calls": None, "refusal": None}),
        (ANTHROPIC, of_blocks({"type": "file"}, {"type": "hologram"})),
        (CHAT, of_blocks({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "image"})),
        (RESPONSES, of_blocks({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})),
        (RESPONSES, {"type": "function_call", "call_id": "1", "name": "ls", "arguments": "{}"}),
        (CHAT, {"role": "user", "content": [5, {"type": ["image"]}]}),
    ],
)
def test_what_may_be_of_the_format_is_not_refused(form, row):
    require_own_format(row, form)


@pytest.mark.parametrize("form", WRITE)
def test_the_words_of_an_unknown_block_are_a_text_and_the_block_comes_back(form):
    message = read_message(of_blocks(HOLOGRAM), form)

    assert message.parts[0].text_content == "a walrus\ndiving"
    assert WRITE[form](message) == of_blocks(HOLOGRAM)


def test_the_words_of_an_unknown_piece_of_a_result_are_its_text():
    row = of_blocks({**RESULT, "content": [{"type": "hologram", "scene": "a walrus"}]})

    message = read_message(row, ANTHROPIC)

    assert message.parts[0].tool_output == "a walrus"
    assert to_anthropic(message) == row


OWN = {"created_at": "2020-01-01T01:00:00+01:00", "author": "Ada", "metadata": {"channel": "chat", "n": 1.0}}
ROW = {"role": "user", "content": "A walrus dives."}


@pytest.mark.parametrize("form", WRITE)
def test_each_format_takes_the_fields_and_gives_them_back(db, form):
    conversation_id = a_conversation().conversation_id
    api = Api(an_api_key())

    api.post(f"conversations/{conversation_id}/messages/", {"format": form, "messages": [{**ROW, **OWN, "more": 1}]})

    [stored] = api.get(f"conversations/{conversation_id}/messages/").body["items"]
    assert (stored["created_at"], stored["author"]) == ("2020-01-01T00:00:00Z", "Ada")
    assert stored["metadata"].items() >= OWN["metadata"].items()
    message = read_message({**ROW, **OWN, "more": 1}, form)
    assert message.created_at == datetime(2020, 1, 1, tzinfo=UTC)
    assert WRITE[form](message) == {**ROW, **OWN, "more": 1}


@pytest.mark.parametrize("form", WRITE)
@pytest.mark.parametrize(
    "own",
    [{}, {"metadata": {}}, {"metadata": {"openai_chat": {"drop": ["role"]}, "anthropic": 1, "openai_responses": 2}},
     {"created_at": None, "author": None, "metadata": None}, {"author": "Ada", "name": "Bob"}, {"metadata": {"a": 1}}],
)  # fmt: skip
def test_whatever_the_fields_hold_the_row_comes_back(form, own):
    assert WRITE[form](read_message({**ROW, **own}, form)) == {**ROW, **own}


def test_the_name_of_a_chat_message_is_its_author():
    assert read_message({**ROW, "name": "Bob", "author": "Ada"}, CHAT).author == "Bob"


@pytest.mark.parametrize("form", WRITE)
@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ({"created_at": "bad"}, "created_at: 'bad' is not a time in ISO 8601"),
        ({"created_at": "2020-01-01T00:00:00"}, "created_at: The time needs its zone"),
        ({"idempotency_key": 7}, "idempotency_key: Input should be a valid string"),
    ],
)
def test_a_field_that_is_wrong_is_refused_by_name(form, own, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_message({**ROW, **own}, form)


@pytest.mark.parametrize("form", WRITE)
@pytest.mark.parametrize("own", [{"created_at": 1577836800}, {"author": {"role": "user"}}, {"metadata": ["chat"]}])
def test_a_value_of_another_type_is_the_vendors_own_and_comes_back(form, own):
    message = read_message({**ROW, **own}, form)

    assert (message.created_at, message.author) == (None, None)
    assert WRITE[form](message) == {**ROW, **own}


def test_the_words_of_a_result_are_found_at_any_depth():
    value = {"title": "b", "content": ["c", {"text": "d"}]}
    for _ in range(600):
        value = [value]
    piece = {"type": "new", "title": "a", "content": value}
    result = {"type": "tool_result", "tool_use_id": "1", "content": [piece]}

    of_anthropic = read_message({"role": "user", "content": [result]}, Format.ANTHROPIC)
    item = {"type": "new_output", "call_id": "1", "output": piece}
    of_responses = read_message(item, Format.OPENAI_RESPONSES)

    assert of_anthropic.parts[0].tool_output == "a\nb\nd"
    assert of_responses.parts[0].tool_output == "a\nb\nc\nd"
