"""What is neither counted in tokens nor a file is bounded, where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.errors import TooLarge
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.factories import a_conversation, a_store
from tests.lcmsite.callers import Api, an_api_key

pytestmark = pytest.mark.django_db

MUCH = "x" * 65_536

TOO_MUCH = {
    "messages[1].metadata": {"role": "user", "content": "a", "metadata": {"x": MUCH}},
    "messages[1].parts[0].metadata": {
        "role": "user",
        "parts": [{"part_type": "text", "text_content": "a", "metadata": {"x": MUCH}}],
    },
    "messages[1].parts[1].tool_input": {
        "role": "user",
        "parts": [
            {"part_type": "text", "text_content": "a"},
            {"part_type": "text", "text_content": "b", "tool_input": [MUCH]},
        ],
    },
    "messages[1].parts[0].snapshot_hash": {
        "role": "user",
        "content": "a",
        "parts": [{"part_type": "snapshot", "snapshot_hash": MUCH + "x"}],
    },
}


@pytest.mark.parametrize("field", TOO_MUCH)
def test_an_append_with_too_much_beside_its_texts_is_refused_by_the_name_of_the_field(field):
    conversation = a_conversation("first")
    body = {"messages": [{"role": "user", "content": "good"}, TOO_MUCH[field]]}

    refused = Api(an_api_key()).post(f"conversations/{conversation.conversation_id}/messages/", body)

    assert (refused.status, refused.body["code"]) == (413, "metadata_too_large")
    assert refused.body["context"]["field"] == field and field in refused.body["detail"]
    assert a_store().get_conversation(conversation_id=conversation.conversation_id).counters.message_count == 1


def test_many_small_metadata_of_one_message_count_together():
    parts = tuple(NewPart(PartType.TEXT, text_content="a", metadata={"x": "y" * 1000}) for _ in range(100))
    conversation = a_conversation()

    with pytest.raises(TooLarge):
        a_store().append_messages(
            conversation_id=conversation.conversation_id, messages=[NewMessage(Role.USER, parts=parts)]
        )


def test_texts_calls_results_and_attachments_are_bounded_otherwise():
    parts = (
        NewPart(PartType.TEXT, text_content="word " * 20_000),
        NewPart(PartType.TOOL, tool_name="write", tool_call_id="1", tool_input={"text": "word " * 20_000}),
        NewPart(PartType.TOOL, tool_name="write", tool_call_id="1", tool_output="word " * 20_000),
        NewPart(PartType.FILE, file_url="data:image/png;base64," + "A" * 100_000),
    )
    conversation = a_conversation()

    appended = a_store().append_messages(
        conversation_id=conversation.conversation_id,
        messages=[NewMessage(Role.USER, parts=parts, metadata={"x": "y" * 60_000})],
    )

    assert appended.counters.message_count == 1


def posted(path: str, body: dict[str, Any]) -> tuple[int, Any]:
    reply = Api(an_api_key()).post(path, body)
    return reply.status, reply.body.get("code")


def test_metadata_of_a_conversation_and_of_a_boundary_have_the_same_bound():
    conversation = a_conversation("a")

    opened = posted("conversations/", {"session_id": "new", "metadata": {"x": MUCH}})
    bounded = posted(
        f"conversations/{conversation.conversation_id}/boundaries/",
        {"host_reference": "cut", "last_seq": 1, "metadata": {"x": MUCH}},
    )

    assert opened == bounded == (413, "metadata_too_large")
