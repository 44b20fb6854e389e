"""docs/messages.md: what it shows is taken as it stands, and it names every field there is."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from conversations.formats import Format
from conversations.models import Message
from conversations.types import NewMessage, NewPart, PartType, Role
from lcmsite.ops.documents import PROJECT
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key

PAGE = (PROJECT / "docs" / "messages.md").read_text()
SHOWN = {form: json.loads(body) for form, body in re.findall(r"^## `(\w+)`.*?^```json\n(.*?)^```$", PAGE, re.S | re.M)}


def test_the_page_shows_every_form():
    assert SHOWN.keys() == set(Format)


@pytest.mark.django_db
@pytest.mark.parametrize("form", Format)
def test_each_form_is_stored_as_the_same_exchange_and_once(form):
    conversation = a_conversation()
    api = Api(an_api_key())
    path = f"conversations/{conversation.conversation_id}/messages/"

    first, again = api.post(path, SHOWN[form]), api.post(path, SHOWN[form])

    assert (first.status, again.status) == (201, 201)
    assert [row["created"] for row in again.body["messages"]] == [False] * 4
    stored = Message.objects.filter(conversation_id=conversation.conversation_id).order_by("seq")
    assert [message.role for message in stored] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert [message.content for message in stored] == [
        "Which port does staging use?",
        '[tool_call read_file] {"path": "staging.toml"}',
        "port = 5433",
        "It is 5433.",
    ]


def test_each_form_is_valid_by_the_openapi_document(client):
    document = client.get("/api/v1/schema/").json()
    append = document["paths"]["/api/v1/conversations/{conversation_id}/messages/"]["post"]["requestBody"]
    schema = {**append["content"]["application/json"]["schema"], "components": document["components"]}

    validator = jsonschema.Draft202012Validator(schema)
    assert {form: list(validator.iter_errors(SHOWN[form])) for form in Format} == {form: [] for form in Format}


def test_every_field_of_a_message_and_of_a_part_is_named():
    of_messages, of_parts = PAGE.split("| `part_type` |")

    assert {name for name in NewMessage.__dataclass_fields__ if f"| `{name}` |" not in of_messages} == set()
    assert {name for name in NewPart.__dataclass_fields__ if f"`{name}`" not in PAGE} == set()
    assert {kind for kind in PartType if f"`{kind}`" not in of_parts} == set()
