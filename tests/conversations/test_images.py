"""Images cost tokens, in the store as in the gateway."""

from __future__ import annotations

import pytest

from compaction.engine import CompactionEngine
from conversations.content.tokens import IMAGE_TOKENS, MESSAGE_OVERHEAD_TOKENS
from conversations.formats import Format, read_message
from integrity.checker import IntegrityChecker
from lcmsite.gateway.window.counting import RequestCounter
from tests.factories import a_conversation, say
from tests.integrity.breaking import breaking, result

CHAT, RESPONSES, ANTHROPIC, NEUTRAL = Format.OPENAI_CHAT, Format.OPENAI_RESPONSES, Format.ANTHROPIC, Format.NEUTRAL
DATA = "iVBO" * 500
LINK, INLINE = "https://example.org/dog.png", f"data:image/png;base64,{DATA}"


def of_user(*pieces):
    return {"role": "user", "content": [{"type": "text", "text": "Look at this."}, *pieces]}


def anthropic_image(**source):
    return {"type": "image", "source": source}


def chat_image(url):
    return {"type": "image_url", "image_url": {"url": url}}


def item_image(**given):
    return {"type": "input_image", **given}


BASE64 = anthropic_image(type="base64", media_type="image/png", data=DATA)
PDF = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": DATA}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "here"}, BASE64, BASE64]}
ATTACHED = {
    "base64": (ANTHROPIC, of_user(BASE64), 1),
    "two in a result": (ANTHROPIC, {"role": "user", "content": [RESULT]}, 2),
    "link": (ANTHROPIC, of_user(anthropic_image(type="url", url=LINK)), 1),
    "file of the vendor": (ANTHROPIC, of_user(anthropic_image(type="file", file_id="file_1")), 1),
    "document": (ANTHROPIC, of_user(PDF), 1),
    "chat, inline": (CHAT, of_user(chat_image(INLINE), chat_image(INLINE)), 2),
    "chat, link": (CHAT, of_user(chat_image(LINK)), 1),
    "chat, small": (CHAT, of_user(chat_image("data:image/png;base64,iVBO")), 1),
    "chat, file": (CHAT, of_user({"type": "file", "file": {"filename": "a.pdf", "file_data": INLINE}}), 1),
    "item": (RESPONSES, of_user(item_image(image_url=LINK), item_image(file_id="f")), 2),
    "item, result": (
        RESPONSES,
        {"type": "function_call_output", "call_id": "c", "output": [item_image(image_url=INLINE)]},
        1,
    ),
    "image made": (RESPONSES, {"type": "image_generation_call", "id": "ig_1", "result": DATA}, 1),
}
DESCRIBED = {
    "a caption": {"role": "user", "parts": [{"type": "image", "mime": "image/png", "caption": "a dog"}]},
    "a file of LCM": {"role": "user", "parts": [{"type": "image", "mime": "image/png", "url": "file_0123456789"}]},
}


@pytest.mark.parametrize("name", ATTACHED)
def test_an_image_costs_the_same_in_the_store_and_in_the_gateway(db, name):
    form, row, count = ATTACHED[name]

    [stored] = say(a_conversation().conversation_id, read_message(row, form)).messages

    in_gateway = RequestCounter().entry_tokens(row) - MESSAGE_OVERHEAD_TOKENS
    assert stored.token_count // IMAGE_TOKENS == in_gateway // IMAGE_TOKENS == count
    assert abs(stored.token_count - in_gateway) < 40


@pytest.mark.parametrize("name", DESCRIBED)
def test_an_image_that_no_model_gets_costs_nothing(db, name):
    [stored] = say(a_conversation().conversation_id, read_message(DESCRIBED[name], NEUTRAL)).messages

    assert stored.token_count < 40


@pytest.mark.parametrize("row", [of_user(BASE64), {"role": "user", "content": [BASE64]}], ids=["with text", "alone"])
def test_images_fill_the_context_until_it_is_compacted(db, row):
    conversation_id = a_conversation(overrides={"model_token_budget": 16_000}).conversation_id

    appended = say(conversation_id, *[read_message(row, ANTHROPIC)] * 20)
    done = CompactionEngine.from_settings().compact(conversation_id=conversation_id)

    assert appended.counters.active_tokens > 20 * IMAGE_TOKENS
    assert done.tokens_after < 9 * IMAGE_TOKENS
    assert IntegrityChecker.from_settings().run().finding_count == 0


@pytest.mark.parametrize(("less", "findings"), [(0, 0), (IMAGE_TOKENS, 0), (IMAGE_TOKENS - 1, 1)])
def test_a_count_without_images_of_an_earlier_version_is_no_finding(db, less, findings):
    [stored] = say(a_conversation().conversation_id, read_message(of_user(BASE64), ANTHROPIC)).messages
    breaking("UPDATE messages SET token_count = token_count - %s", less)

    report = IntegrityChecker.from_settings().run()

    assert result(report, "token_counts_are_recounts").count == findings
