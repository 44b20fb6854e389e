"""LCM's own fields of a message, in the formats of vendors."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from conversations.formats import Format, read_message
from conversations.formats.anthropic import to_anthropic
from conversations.formats.openai_chat import to_openai_chat
from conversations.formats.openai_responses import to_openai_responses
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key

WRITE = {
    Format.OPENAI_CHAT: to_openai_chat,
    Format.OPENAI_RESPONSES: to_openai_responses,
    Format.ANTHROPIC: to_anthropic,
}
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
    assert read_message({**ROW, "name": "Bob", "author": "Ada"}, Format.OPENAI_CHAT).author == "Bob"


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
