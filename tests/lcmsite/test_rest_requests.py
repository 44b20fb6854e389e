"""Requests at the edges of HTTP: one name for each thing, one answer to each mistake, whoever makes it."""

import gzip
import json

import pytest
from django.test import Client

from conversations.models import Message
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation():
    return a_conversation("hello", "hi there", session_id="s1")


@pytest.mark.parametrize("form", ["{}.0", "%20{}", "{}%20", "+{}", "0{}", "{}_0", "{}e0", "0x{}", "{}%0A", "-{}"])
def test_a_number_in_a_path_is_written_in_one_way(conversation, form):
    api = Api(an_api_key())
    written = form.format(conversation.conversation_id)

    assert api.get(f"conversations/{conversation.conversation_id}/").status == 200
    assert api.get(f"conversations/{written}/").status == 400
    assert api.get(f"messages/msg_{written}/").status == 400


@pytest.mark.parametrize("number", ["1.0", "+1", " 1", "1_0", "01", "\u0661", "1" * 2000])
def test_a_number_in_a_query_is_written_in_one_way_too(conversation, number):
    reply = Api(an_api_key()).get(f"conversations/{conversation.conversation_id}/messages/", limit=number)

    assert (reply.status, reply.body["code"]) == (400, "invalid_params")


@pytest.mark.parametrize("body", ['{"messages": [', "[]", "{}", '{"messages": [{"role": "wizard"}]}', "\x00"])
@pytest.mark.parametrize("path", ["messages/", "compactions/", "files/"])
def test_a_key_that_may_not_write_is_told_so_whatever_it_sends(conversation, path, body):
    reader = Api(an_api_key(None, "read"))

    reply = reader.post(f"conversations/{conversation.conversation_id}/{path}", body)

    assert (reply.status, reply.body["code"]) == (403, "forbidden")


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "br", "deflate, gzip"])
def test_an_encoded_body_is_refused_and_says_why(conversation, coding):
    body = gzip.compress(json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode())

    reply = Client().generic(
        "POST",
        f"/api/v1/conversations/{conversation.conversation_id}/messages/",
        body,
        content_type="application/json",
        headers={"Authorization": f"Bearer {an_api_key()}", "Content-Encoding": coding},
    )

    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported_media_type")
    assert "Content-Encoding" in reply.json()["detail"]
    assert Message.objects.count() == 2


def test_a_body_that_says_it_is_sent_as_it_is_is_taken(conversation):
    reply = Client().post(
        f"/api/v1/conversations/{conversation.conversation_id}/messages/",
        {"messages": [{"role": "user", "content": "x"}]},
        content_type="application/json",
        headers={"Authorization": f"Bearer {an_api_key()}", "Content-Encoding": "identity"},
    )

    assert reply.status_code == 201


@pytest.mark.parametrize("limit", [0, 201, 10_001, "many"])
def test_a_limit_out_of_range_has_one_code_whoever_sets_the_range(conversation, limit):
    reply = Api(an_api_key()).get("matches/", query="hello", limit=limit)

    assert (reply.status, reply.body["code"]) == (400, "invalid_params")
    assert list(reply.body["errors"]) == ["limit"]


@pytest.mark.parametrize("query", ["query=%FF", "query=caf%E9", "query=%ED%A0%80", "%FF=a"])
def test_a_query_that_is_not_utf_8_is_refused_and_nothing_else_is_searched_for(query):
    reply = Client().get(f"/api/v1/matches/?{query}", headers={"Authorization": f"Bearer {an_api_key()}"})

    assert (reply.status_code, reply.json()["code"]) == (400, "invalid_params")
    assert "UTF-8" in reply.json()["detail"]


@pytest.mark.parametrize("query", ["query=caf%C3%A9", "query=café", "query=caf%c3%a9&&", "qu%65ry=caf%C3%A9"])
def test_a_query_says_the_same_however_it_is_written(query):
    reply = Client().get(f"/api/v1/matches/?{query}", headers={"Authorization": f"Bearer {an_api_key()}"})

    assert (reply.status_code, reply.json()["query"]) == (200, "café")


@pytest.mark.parametrize(
    ("written", "meant"), [("a+b%2Bc", "a b+c"), ("a=b%3D", "a=b="), ("a%26b;c", "a&b;c"), ("a%zz", "a%zz")]
)
def test_a_query_is_read_as_forms_are_written(written, meant):
    reply = Client().get(f"/api/v1/matches/?&query={written}", headers={"Authorization": f"Bearer {an_api_key()}"})

    assert (reply.status_code, reply.json()["query"]) == (200, meant)


def test_a_query_of_very_many_fields_is_refused_unread():
    query = "&".join(["query=hello"] * 1001)

    reply = Client().get(f"/api/v1/matches/?{query}", headers={"Authorization": f"Bearer {an_api_key()}"})

    assert (reply.status_code, reply.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"question": "x", "depth": "2"}, "depth"),
        ({"question": "x", "depth": True}, "depth"),
        ({"question": "x", "depth": 1.5}, "depth"),
        ({"question": 5}, "question"),
    ],
)
def test_a_body_says_each_thing_as_what_it_is(body, field):
    reply = Api(an_api_key()).post("expand-queries/", body)

    assert (reply.status, list(reply.body["errors"])) == (400, [field])


@pytest.mark.parametrize("background", [0, 1, "true", "yes", None])
def test_what_is_neither_true_nor_false_is_refused(conversation, background):
    path = f"conversations/{conversation.conversation_id}/compactions/"

    reply = Api(an_api_key()).post(path, {"background": background})

    assert (reply.status, list(reply.body["errors"])) == (400, ["background"])


def test_a_whole_number_may_be_written_with_a_point_in_json(conversation):
    part = {"part_type": "text", "text_content": "x", "step_tokens_in": 7.0}

    reply = Api(an_api_key()).post(
        f"conversations/{conversation.conversation_id}/messages/", {"messages": [{"role": "user", "parts": [part]}]}
    )

    assert reply.status == 201
    assert Message.objects.order_by("seq").last().parts.first().step_tokens_in == 7


@pytest.mark.parametrize("name", ["fresh_tail_count", "context_threshold"])
def test_a_huge_number_is_refused_in_few_words(conversation, name):
    path = f"conversations/{conversation.conversation_id}/overrides/"

    reply = Api(an_api_key()).ask("PUT", path, {"overrides": {name: 10**4000}})

    assert reply.status == 400
    assert len(reply.body["detail"]) < 200


@pytest.mark.parametrize("overrides", [{"fresh_tail_count": "4"}, {"enabled": "yes"}, {"context_threshold": True}])
def test_a_setting_of_a_conversation_is_said_as_what_it_is(conversation, overrides):
    path = f"conversations/{conversation.conversation_id}/overrides/"

    reply = Api(an_api_key()).ask("PUT", path, {"overrides": overrides})

    assert (reply.status, list(reply.body["errors"])) == (400, ["overrides"])


@pytest.mark.parametrize("sha256", ["00", "g" * 64, "00 " * 64, "", "0" * 65])
def test_what_is_no_hash_is_refused_where_one_is_announced(conversation, sha256):
    path = f"conversations/{conversation.conversation_id}/uploads/"

    reply = Api(an_api_key()).post(path, {"byte_size": 1, "sha256": sha256})

    assert (reply.status, list(reply.body["errors"])) == (400, ["sha256"])


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"sort": "newest"}, "sort: 'newest' is none of relevance, recency, hybrid."),
        ({"roles": ["user", "robot"]}, "roles[1]: 'robot' is none of system, user, assistant, tool."),
    ],
)
def test_who_names_no_choice_there_is_is_told_the_choices(query, said):
    reply = Api(an_api_key()).get("matches/", query="hello", **query)

    assert (reply.status, reply.body["detail"]) == (400, said)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"limit": 0}, "limit: This must be 1 at least."),
        ({"limit": 10_001}, "limit: This may be 10000 at most."),
        ({"under": "s" * 201}, "under: This may have 200 characters at most."),
        ({"conversation_ids": list(range(101))}, "conversation_ids: This may have 100 values at most."),
    ],
)
def test_what_is_too_much_or_too_little_is_told_with_what_may_be(query, said):
    reply = Api(an_api_key()).get("matches/", query="hello", **query)

    assert (reply.status, reply.body["detail"]) == (400, said)


def test_who_names_a_conversation_by_its_session_is_told_where_its_number_is(conversation):
    api = Api(an_api_key())

    reply = api.get("conversations/s1/context/")

    assert (reply.status, reply.body["code"]) == (400, "invalid_params")
    assert "conversations/find/?session_id=" in reply.body["detail"]
    assert api.get("conversations/find/", session_id="s1").body["conversation_id"] == conversation.conversation_id


def test_who_opens_a_thing_of_another_kind_is_told_what_the_id_is_of(conversation):
    message = Message.objects.get(conversation_id=conversation.conversation_id, seq=1)

    answers = [Api(an_api_key()).get(f"summaries/{id}/expansion/") for id in (f"msg_{message.pk}", "msg_0", "sum_0")]

    assert [reply.status for reply in answers] == [404, 404, 404]
    # Whether there is such a message is not told.
    assert ["the id of a message" in reply.body["detail"] for reply in answers] == [True, True, False]


@pytest.mark.parametrize("kind", ["text/csv", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
def test_a_file_that_is_sent_as_something_else_than_bytes_is_told_how_to_be_sent(conversation, kind):
    path = f"/api/v1/conversations/{conversation.conversation_id}/files/?file_name=a.csv"
    headers = {"Authorization": f"Bearer {an_api_key()}"}

    reply = Client().generic("POST", path, b"a,b", content_type=kind, headers=headers)

    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported_media_type")
    assert "application/octet-stream" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("path", "hint"), [("/api/v1/matches", "end with a slash"), ("/api/v1/", "/api/v1/docs/"), ("/api/", "docs/")]
)
def test_a_path_that_leads_nowhere_is_told_what_may_be_meant(path, hint):
    reply = Client().get(path)

    assert (reply.status_code, reply.json()["code"]) == (404, "no_such_path")
    assert hint in reply.json()["detail"] and ("slash" in hint) == ("slash" in reply.json()["detail"])


@pytest.mark.parametrize("path", ["/api/v1/conversations/", "/"])
def test_a_host_name_that_is_not_ours_is_told_which_setting_would_make_it_so(path):
    reply = Client().get(path, headers={"Host": "lcm.example.org"})

    assert reply.status_code == 400
    assert "LCM_ALLOWED_HOSTS" in reply.content.decode()
