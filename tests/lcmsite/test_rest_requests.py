"""Requests at the edges of HTTP: one name for each thing, one answer to each mistake."""

import gzip
import json

import pytest
from django.test import Client

from conversations import param_fields
from conversations.models import Message
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key

pytestmark = pytest.mark.django_db
ONE = "conversations/{id}/"
APPEND = json.dumps({"messages": [{"role": "user", "content": "x"}]}).encode()


@pytest.fixture
def conversation():
    return a_conversation("hello", "hi there", session_id="s1")


def sent(verb, path, body=b"", *, content_type="application/json", **headers):
    """The answer to a request as it is written, by the holder of a key."""
    headers = {"Authorization": f"Bearer {an_api_key()}", **headers}
    return Client().generic(verb, f"/api/v1/{path}", body, content_type=content_type, headers=headers)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("messages/", '{"messages": ['),
        ("messages/", '{"messages": [{"role": "wizard"}]}'),
        ("compactions/", "[]"),
        ("files/", "\x00"),
    ],
)
def test_a_key_that_may_not_write_is_refused_whatever_it_sends(conversation, path, body):
    reader = Api(an_api_key(None, "read"))

    reply = reader.post(f"conversations/{conversation.conversation_id}/{path}", body)

    assert (reply.status, reply.body["code"]) == (403, "forbidden")


@pytest.mark.parametrize(
    ("coding", "status"), [("gzip", 415), ("GZIP", 415), ("br", 415), ("deflate, gzip", 415), ("identity", 201)]
)
def test_an_encoded_body_is_refused_with_the_reason(conversation, coding, status):
    body = APPEND if coding == "identity" else gzip.compress(APPEND)

    reply = sent(
        "POST", f"conversations/{conversation.conversation_id}/messages/", body, **{"Content-Encoding": coding}
    )

    assert reply.status_code == status
    assert status == 201 or (reply.json()["code"], Message.objects.count()) == ("unsupported_media_type", 2)
    assert status == 201 or "Content-Encoding" in reply.json()["detail"]


@pytest.mark.parametrize("query", ["query=%FF", "query=caf%E9", "query=%ED%A0%80", "%FF=a"])
def test_a_query_that_is_not_utf_8_is_refused(query):
    reply = sent("GET", f"matches/?{query}")

    assert (reply.status_code, reply.json()["code"]) == (400, "invalid_params")
    assert "UTF-8" in reply.json()["detail"]


@pytest.mark.parametrize(
    ("query", "read"),
    [
        *((each, "café") for each in ("query=caf%C3%A9", "query=café", "query=caf%c3%a9&&", "qu%65ry=caf%C3%A9")),
        ("&query=a+b%2Bc", "a b+c"),
        ("&query=a=b%3D", "a=b="),
        ("&query=a%26b;c", "a&b;c"),
        ("&query=a%zz", "a%zz"),
    ],
)
def test_a_query_is_read_as_forms_are_written(query, read):
    reply = sent("GET", f"matches/?{query}")

    assert (reply.status_code, reply.json()["query"]) == (200, read)


def test_a_query_of_very_many_fields_is_refused_unread():
    reply = sent("GET", "matches/?" + "&".join(["query=hello"] * 1001))

    assert (reply.status_code, reply.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize(
    ("verb", "path", "body", "field"),
    [
        ("POST", "expand-queries/", {"question": "x", "depth": "2"}, "depth"),
        ("POST", "expand-queries/", {"question": "x", "depth": True}, "depth"),
        ("POST", "expand-queries/", {"question": "x", "depth": 1.5}, "depth"),
        ("POST", "expand-queries/", {"question": 5}, "question"),
        *(("POST", ONE + "compactions/", {"background": each}, "background") for each in (0, 1, "true", "yes", None)),
        ("PUT", ONE + "overrides/", {"overrides": {"fresh_tail_count": "4"}}, "overrides"),
        ("PUT", ONE + "overrides/", {"overrides": {"enabled": "yes"}}, "overrides"),
        ("PUT", ONE + "overrides/", {"overrides": {"context_threshold": True}}, "overrides"),
        *(
            ("POST", ONE + "uploads/", {"byte_size": 1, "sha256": each}, "sha256")
            for each in ("00", "g" * 64, "00 " * 64, "", "0" * 65)
        ),
    ],
    ids=lambda value: str(value)[:60],
)
def test_a_value_of_another_type_is_refused_with_the_name_of_its_field(conversation, verb, path, body, field):
    reply = Api(an_api_key()).ask(verb, path.format(id=conversation.conversation_id), body)

    assert (reply.status, list(reply.body["errors"])) == (400, [field])


@pytest.mark.parametrize("name", ["fresh_tail_count", "context_threshold"])
def test_a_huge_number_is_refused_in_few_words(conversation, name):
    path = f"conversations/{conversation.conversation_id}/overrides/"

    reply = Api(an_api_key()).ask("PUT", path, {"overrides": {name: 10**4000}})

    assert reply.status == 400
    assert len(reply.body["detail"]) < 200


def test_a_whole_number_may_be_written_with_a_point_in_json(conversation):
    part = {"part_type": "text", "text_content": "x", "step_tokens_in": 7.0}

    reply = Api(an_api_key()).post(
        f"conversations/{conversation.conversation_id}/messages/", {"messages": [{"role": "user", "parts": [part]}]}
    )

    assert reply.status == 201
    assert Message.objects.order_by("seq").last().parts.first().step_tokens_in == 7


@pytest.mark.parametrize("kind", ["text/csv", "multipart/form-data; boundary=x", "application/x-www-form-urlencoded"])
def test_a_file_of_another_media_type_is_refused_with_the_right_one(conversation, kind):
    path = f"conversations/{conversation.conversation_id}/files/?file_name=a.csv"

    reply = sent("POST", path, b"a,b", content_type=kind)

    assert (reply.status_code, reply.json()["code"]) == (415, "unsupported_media_type")
    assert "application/octet-stream" in reply.json()["detail"]


@pytest.mark.parametrize("path", ["/api/v1/conversations/", "/", "/healthz"])
def test_a_host_name_that_is_not_ours_is_refused_with_the_setting(path):
    reply = Client().get(path, headers={"Host": "lcm.example.org"})

    assert reply.status_code == 400
    assert "LCM_ALLOWED_HOSTS" in reply.content.decode()
    assert not path.startswith("/api/") or reply.json()["code"] == "unknown_host"


@pytest.mark.parametrize("most", [1_000_000, 1_000])
@pytest.mark.parametrize(
    "body",
    [
        {"messages": [1] * 20_000},
        {"messages": [{"role": "user", "content": "x", **{f"k{n}": 1 for n in range(20_000)}}]},
        {"messages": [{"role": "user", "parts": [1] * 20_000}]},
        {"messages": [{"role": "user", "parts": [{f"k{n}": 1 for n in range(20_000)}]}]},
        {f"k{n}": 1 for n in range(20_000)},
    ],
    ids=["messages", "fields of a message", "parts", "fields of a part", "fields"],
)
@pytest.mark.parametrize("path", ["messages/", "turns/"])
def test_very_many_wrong_values_are_refused_as_one_error(conversation, path, body, most, monkeypatch):
    monkeypatch.setattr(param_fields, "MOST_VALUES", most)

    answer = sent("POST", ONE.format(id=conversation.conversation_id) + path, json.dumps(body).encode()).json()

    assert answer["status"] == 400 and "20,00" in answer["detail"] and "too many" in answer["detail"]
    assert len(answer.get("errors", {})) <= 1
