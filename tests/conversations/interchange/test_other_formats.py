"""Messages in the shape of another vendor's format, and blocks that no format knows."""

from __future__ import annotations

import pytest

from conversations.formats import Format, read_message, require_own_format
from conversations.formats.anthropic import to_anthropic
from conversations.formats.openai_chat import to_openai_chat
from conversations.formats.openai_responses import to_openai_responses
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


def of_user(*pieces):
    return {"role": "user", "content": [*pieces]}


@pytest.mark.parametrize(
    ("form", "row", "mark", "other"),
    [
        (CHAT, of_user(RESULT), "tool_result", ANTHROPIC),
        (CHAT, of_user({"type": "image", "source": {"type": "url", "url": "x"}}), "image", ANTHROPIC),
        (CHAT, of_user({"type": "input_text", "text": "x"}), "input_text", RESPONSES),
        (ANTHROPIC, CALLS, "tool_calls", CHAT),
        (ANTHROPIC, {"role": "tool", "tool_call_id": "1", "content": "x"}, "tool_call_id", CHAT),
        (ANTHROPIC, of_user({"type": "image_url", "image_url": {"url": "x"}}), "image_url", CHAT),
        (RESPONSES, of_user({"type": "tool_use", "id": "1", "name": "ls", "input": {}}), "tool_use", ANTHROPIC),
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
        (ANTHROPIC, of_user({"type": "file"}, {"type": "hologram"})),
        (CHAT, of_user({"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "image"})),
        (RESPONSES, of_user({"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}})),
        (RESPONSES, {"type": "function_call", "call_id": "1", "name": "ls", "arguments": "{}"}),
        (CHAT, {"role": "user", "content": [5, {"type": ["image"]}]}),
    ],
)
def test_what_may_be_of_the_format_is_not_refused(form, row):
    require_own_format(row, form)


@pytest.mark.parametrize("form", WRITE)
def test_the_words_of_an_unknown_block_are_a_text_and_the_block_comes_back(form):
    message = read_message(of_user(HOLOGRAM), form)

    assert message.parts[0].text_content == "a walrus\ndiving"
    assert WRITE[form](message) == of_user(HOLOGRAM)


def test_the_words_of_an_unknown_piece_of_a_result_are_its_text():
    row = of_user({**RESULT, "content": [{"type": "hologram", "scene": "a walrus"}]})

    message = read_message(row, ANTHROPIC)

    assert message.parts[0].tool_output == "a walrus"
    assert to_anthropic(message) == row
