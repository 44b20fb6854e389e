"""What a request of a program costs before and after what it asks for: next to nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compaction.engine import CompactionEngine
from conversations.models import Message, Summary
from lcmsite.catalogue.operation import placeholders
from lcmsite.catalogue.operations import OPERATIONS
from tests.factories import a_conversation
from tests.lcmsite.bad_appends import said
from tests.lcmsite.callers import Api, an_api_key
from tests.statements import counted_statements

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_rate_limit(settings):
    """It is counted in the database once in a while."""
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, rate_limit=0)


def test_an_append_over_http_is_one_statement_while_its_key_is_known(clock):
    api, conversation = Api(an_api_key(None, "write")), a_conversation()
    path = f"conversations/{conversation.conversation_id}/messages/"
    api.post(path, {"messages": [{"role": "user", "content": "first"}]})

    with counted_statements() as asked:
        reply = api.post(path, {"messages": [{"role": "user", "content": "second"}]})

    assert reply.status == 201
    assert len(asked) == 1, asked


@pytest.mark.parametrize("path", ["", "messages/", "context/", "pressure/"])
def test_a_request_of_a_program_has_no_session(path):
    api, conversation = Api(an_api_key()), a_conversation("hello")

    with counted_statements() as asked:
        reply = api.get(f"conversations/{conversation.conversation_id}/{path}")

    assert reply.status == 200
    assert not [statement for statement in asked if "django_session" in statement or "auth_user" in statement]
    assert "Set-Cookie" not in reply.headers
    assert "Cookie" not in reply.headers.get("Vary", "")


# The most statements that each may send: the look-up of the key, and its own.
STATEMENTS = {
    "lcm_open": 9,
    "lcm_list": 3,
    "lcm_find": 2,
    "lcm_show": 2,
    "lcm_messages": 5,
    "lcm_message": 4,
    "lcm_items": 3,
    "lcm_append": 2,
    "lcm_evaluate": 3,
    "lcm_runs": 3,
    "lcm_run": 2,
    "lcm_grep": 16,
    "lcm_describe": 4,
    "lcm_expand": 5,
    "lcm_lineage": 6,
    "lcm_assemble": 9,
}


def test_no_operation_sends_more_statements_than_it_needs():
    api = Api(an_api_key())
    conversation = a_conversation(*(f"message {number} " * 50 for number in range(50)))
    engine = CompactionEngine.from_settings()
    engine.compact(conversation_id=conversation.conversation_id)
    summary_id = Summary.objects.first().summary_id
    known = {
        "conversation_id": conversation.conversation_id,
        "message_id": Message.objects.filter(conversation_id=conversation.conversation_id).first().pk,
        "session_id": conversation.session_id,
        "run_id": engine.list_runs(conversation_id=conversation.conversation_id)[0].run_id,
        "summary_id": summary_id,
        "id": summary_id,
        "query": "message",
        **said("hello"),
    }
    api.get("conversations/")

    for tool, most in STATEMENTS.items():
        operation = OPERATIONS[tool]
        needed = [name for name, field in operation.params.model_fields.items() if field.is_required()]
        with counted_statements() as statements:
            reply = api.perform(operation, {name: known[name] for name in {*needed, *placeholders(operation.path)}})

        assert reply.status < 300, tool
        assert len(statements) <= most, (tool, statements)
