"""Sessions that a host's plugin has recorded: an import of their files adds what the plugin missed, and no more.

The rows are written here as the plugins send them.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from conversations.formats.neutral import from_neutral
from conversations.models import Conversation
from conversations.store.conversations import ConversationStore
from lcmsite.cli.cli_session import Session
from lcmsite.importing.plugin_sessions import plugin_messages
from lcmsite.types import KeyScope
from tests.importing import host_files as files

pytestmark = pytest.mark.django_db


def sent(key, role, content, *parts):
    """A row of a plugin, with the key that it has there."""
    shown = list(parts) or [{"type": "text", "text": content}]
    row = {"role": role, "created_at": files.ISO, "content": content, "parts": shown}
    return replace(from_neutral(row), idempotency_key=key)


def recorded(session, *messages):
    store = ConversationStore.from_settings(Session().caller_with(KeyScope.WRITE, creates_default=True).scope)
    conversation_id = store.open_conversation(session_id=session).conversation_id
    return store.append_messages(conversation_id=conversation_id, messages=messages)


def active(session):
    conversation = Conversation.objects.get(session_id=session)
    rows = conversation.messages.order_by("seq").values_list("seq", "role", "content")
    return [(role, content) for seq, role, content in rows if conversation.is_active(seq)]


QUESTION = sent(
    "opencode:msg_1", "user", "Which port?", {"type": "text", "text": "Which port?"},
    {"type": "image", "mime": "text/plain", "url": "file:///a.py", "name": "a.py"},
)  # fmt: skip
CALL = {"id": "c1", "name": "read"}
ANSWERED = (
    replace(
        sent(
            "opencode:msg_2", "assistant", "It is 5433.", {"type": "reasoning", "text": "Look."},
            {"type": "tool_call", **CALL, "input": {"filePath": "a.py"}}, {"type": "text", "text": "It is 5433."},
        ),
        created_at=None,
    ),
    replace(
        sent(
            "opencode:msg_2:results", "tool", "PORT = 5433",
            {"type": "tool_result", **CALL, "text": "PORT = 5433", "is_error": False},
        ),
        created_at=None,
    ),
)  # fmt: skip


def test_what_a_plugin_of_opencode_missed_is_added_to_its_conversation(imported):
    recorded("opencode:ses_1", QUESTION)
    session = json.dumps(files.OPENCODE).encode()

    first = imported("ses_1.json", session)
    again = imported("ses_1.json", session)
    # With its next call the plugin sends all of it: what the import has stored is the same to the letter.
    later = recorded("opencode:ses_1", QUESTION, *ANSWERED)

    assert [each["created"] for each in first["conversations"]] == [2]
    assert [each["created"] for each in again["conversations"]] == [0]
    assert not any(each.created for each in later.messages)
    assert list(Conversation.objects.values_list("session_id", flat=True)) == ["opencode:ses_1"]
    assert active("opencode:ses_1") == [
        ("user", "Which port?\n[file a.py]"),
        ("assistant", 'It is 5433.\n[tool_call read] {"filePath": "a.py"}'),
        ("tool", "PORT = 5433"),
    ]


def test_a_subagent_is_the_child_of_the_session_that_the_plugin_recorded(imported):
    recorded("opencode:ses_1", QUESTION)

    imported("ses_2.json", json.dumps(files.OPENCODE_CHILD).encode())

    assert Conversation.objects.get(session_id="ses_2").parent.session_id == "opencode:ses_1"


def test_a_branch_that_a_plugin_of_pi_missed_is_added_where_it_begins(imported):
    recorded(
        "pi:pi-1",
        sent("pi:347e1732e3fc392d7e292a1bd0b3de3732d85544", "user", "Which port?"),
        sent("pi:fe77502be82cb49682dd84b2c029df8f51bafab1", "assistant", "It is 5432."),
    )

    imported("pi-1.jsonl", files.lines_of(files.PI))

    assert list(Conversation.objects.values_list("session_id", flat=True)) == ["pi:pi-1"]
    assert active("pi:pi-1") == [("user", "Which port?"), ("assistant", "It is 5433.")]
    stored = Conversation.objects.get().messages.order_by("seq")
    assert [each.content for each in stored] == ["Which port?", "It is 5432.", "It is 5433."]
    assert stored[2].idempotency_key == "pi:1699c6981bc108f2fafc750521fec23f3227e61c"


def test_a_session_that_no_plugin_recorded_keeps_its_name_and_form(imported):
    recorded("pi:pi-2", sent("pi:1", "user", "Another session."))

    imported("pi-1.jsonl", files.lines_of(files.PI))

    assert Conversation.objects.filter(session_id="pi-1").exists()
    assert active("pi:pi-2") == [("user", "Another session.")]


def test_a_message_of_pi_is_known_by_what_javascript_makes_of_it():
    text = (
        '{"role":"assistant","content":[{"type":"thinking","thinking":"«ü» \\ud83d \\u2028"},{"type":"toolCall",'
        '"id":"c1","name":"bash","arguments":{"command":"ls\\t\\u0001","limit":5.0,"part":0.25}}],'
        '"timestamp":1769850000123}'
    )

    [message] = plugin_messages("pi", {"type": "message", "message": json.loads(text)})

    assert message.idempotency_key == "pi:aba3fd1f40d8568fad16aa02001cfaba9ccff878"


def test_small_numbers_of_pi_are_written_as_javascript_writes_them():
    text = (
        '{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"fit","arguments":{"rates":'
        '[0.0001,-0.00001,0.0000015,-1.5e-7,1e-10,0.1,1e+21,1.5e+300],"text":"1e-05 \\"2e-05"}}],'
        '"timestamp":1769850000123}'
    )

    [message] = plugin_messages("pi", {"type": "message", "message": json.loads(text)})

    assert message.idempotency_key == "pi:a2eec2cac4898191751ebc01dafe7a2b358b68b9"


@pytest.mark.parametrize("time", [1e30, 10**20, 1e17])
def test_a_message_of_pi_at_a_time_that_cannot_be_is_left_out(time):
    message = {"role": "user", "content": "Which port?", "timestamp": time}

    assert plugin_messages("pi", {"type": "message", "message": message}) == []
