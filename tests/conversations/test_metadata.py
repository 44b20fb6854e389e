"""What is neither counted in tokens nor a file is bounded, where it is written."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.errors import TooLarge
from conversations.types import NewMessage, NewPart, PartType, Role
from tests.conversations.appending import append, stored
from tests.factories import a_conversation
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


def posted(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    reply = Api(an_api_key()).post(path, body)
    return reply.status, reply.body


@pytest.mark.parametrize("field", TOO_MUCH)
def test_an_append_with_too_much_beside_its_texts_is_refused_by_the_name_of_the_field(conversation_id, field):
    messages = [{"role": "user", "content": "good"}, TOO_MUCH[field]]

    status, problem = posted(f"conversations/{conversation_id}/messages/", {"messages": messages})

    assert (status, problem["code"], problem["context"]["field"]) == (413, "metadata_too_large", field)
    assert field in problem["detail"]
    assert stored(conversation_id) == []


def test_many_small_metadata_of_one_message_count_together(conversation_id):
    parts = tuple(NewPart(PartType.TEXT, text_content="a", metadata={"x": "y" * 1000}) for _ in range(100))

    with pytest.raises(TooLarge):
        append(conversation_id, NewMessage(Role.USER, parts=parts))


def test_texts_calls_results_and_attachments_are_bounded_otherwise(conversation_id):
    parts = (
        NewPart(PartType.TEXT, text_content="word " * 20_000),
        NewPart(PartType.TOOL, tool_name="write", tool_call_id="1", tool_input={"text": "word " * 20_000}),
        NewPart(PartType.TOOL, tool_name="write", tool_call_id="1", tool_output="word " * 20_000),
        NewPart(PartType.FILE, file_url="data:image/png;base64," + "A" * 100_000),
    )

    appended = append(conversation_id, NewMessage(Role.USER, parts=parts, metadata={"x": "y" * 60_000}))

    assert appended.counters.message_count == 1


def test_metadata_of_a_conversation_and_of_a_boundary_have_the_same_bound():
    boundaries = f"conversations/{a_conversation('a').conversation_id}/boundaries/"

    opened = posted("conversations/", {"session_id": "new", "metadata": {"x": MUCH}})
    bounded = posted(boundaries, {"host_reference": "cut", "last_seq": 1, "metadata": {"x": MUCH}})

    assert [(status, problem["code"]) for status, problem in (opened, bounded)] == [(413, "metadata_too_large")] * 2
