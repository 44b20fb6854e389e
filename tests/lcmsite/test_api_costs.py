"""What a request of a program costs before and after what it asks for: next to nothing."""

from __future__ import annotations

import pytest

from lcmsite.adapters import known_keys
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key
from tests.statements import counted_statements

pytestmark = pytest.mark.django_db


def test_an_append_over_http_is_one_statement_while_its_key_is_known(monkeypatch):
    # However long the first request takes.
    monkeypatch.setattr(known_keys, "SECONDS_KNOWN", 3600.0)
    api, conversation = Api(an_api_key(None, "write")), a_conversation()
    path = f"conversations/{conversation.conversation_id}/messages/"
    api.post(path, {"messages": [{"role": "user", "content": "first"}]})

    with counted_statements() as asked:
        reply = api.post(path, {"messages": [{"role": "user", "content": "second"}]})

    assert reply.status == 201
    assert len(asked) == 1
    assert "lcm_append_message(" in asked[0]


@pytest.mark.parametrize("path", ["", "messages/", "context/", "pressure/"])
def test_a_request_of_a_program_has_no_session(path):
    api, conversation = Api(an_api_key()), a_conversation("hello")

    with counted_statements() as asked:
        reply = api.get(f"conversations/{conversation.conversation_id}/{path}")

    assert reply.status == 200
    assert not [statement for statement in asked if "django_session" in statement or "auth_user" in statement]
    assert "Set-Cookie" not in reply.headers
    assert "Cookie" not in reply.headers.get("Vary", "")
