"""REST as a caller meets it: what is taken, what is refused and how."""

import gzip
import json
from dataclasses import asdict
from urllib.parse import quote

import pytest
from django.test import Client

from conversations.formats import Format
from conversations.models import Conversation, Message
from tests.conversations.appending import full_part
from tests.factories import a_conversation
from tests.lcmsite.bad_appends import BAD_APPENDS, said
from tests.lcmsite.callers import Api, an_api_key

PROBLEM_FIELDS = {"code", "detail", "retryable", "status"}


@pytest.fixture
def api(db):
    return Api(an_api_key())


@pytest.fixture
def conversation(db):
    return a_conversation("hello", "hi there", session_id="s1")


def test_a_conversation_is_opened_filled_and_read_back(api):
    opened = api.post("conversations/", {"session_id": "trip", "title": "To Rome"}).body
    path = f"conversations/{opened['conversation_id']}/"

    appended = api.post(path + "messages/", said("Ciao", name="Ada", created_at="2026-01-31T12:00:00+01:00"))
    listed = api.get(path + "messages/").body["items"]

    assert appended.status == 201
    assert [message["created"] for message in appended.body["messages"]] == [True]
    assert [(message["seq"], message["content"], message["author"]) for message in listed] == [(1, "Ciao", "Ada")]
    assert listed[0]["created_at"] == "2026-01-31T11:00:00Z"
    assert api.get("conversations/find/", session_id="trip").body["title"] == "To Rome"
    assert api.get(f"conversations/conv_{opened['conversation_id']}/messages/").body["items"] == listed
    assert api.get(f"messages/msg_{listed[0]['message_id']}/").body == listed[0]


@pytest.mark.parametrize("session", ["gateway/0b3f2c1d-aaaa", "/s/", "s" * 500, "50% of %2F?"])
def test_an_item_is_named_by_its_session_whatever_is_in_the_name(api, session):
    conversation = a_conversation("hello", session_id=session)

    described = api.get(f"items/{quote(session, safe='')}/")
    of_impact = api.get(f"items/{quote(session, safe='')}/impact/")

    assert (described.status, described.body["id"]) == (200, f"conv_{conversation.conversation_id}")
    # That is of messages, summaries and files.
    assert of_impact.body["code"] in ("not_found", "invalid_params")


def test_every_part_column_is_taken_and_given_back(api, conversation):
    full = asdict(full_part()) | {"metadata": {"z": 1, "a": 2}}
    part = json.loads(json.dumps(full, default=str))
    path = f"conversations/{conversation.conversation_id}/messages/"

    api.post(path, {"messages": [{"role": "tool", "parts": [part]}]})
    stored = api.get(path, after_seq=2).body["items"][0]["parts"][0]

    assert {name: stored[name] for name in part} == part
    assert list(stored["tool_input"]) == ["z", "a"]


@pytest.mark.parametrize(
    "content", ["\x00", "a\ud800b", "\udfff", "", " ", "e\u0301", "word " * 3, "\u2028", "\r\n\t"], ids=ascii
)
def test_every_character_comes_back(api, conversation, content):
    path = f"conversations/{conversation.conversation_id}/messages/"

    appended = api.post(path, said(content))

    assert appended.status == 201
    assert api.get(path, after_seq=2).body["items"][0]["content"] == content


def test_five_megabytes_of_distinct_words_are_stored(api, conversation):
    words = " ".join(f"w{number:07}" for number in range(560_000))
    path = f"conversations/{conversation.conversation_id}/messages/"

    appended = api.post(path, said(words))

    assert len(words) > 5_000_000
    assert appended.status == 201
    message_id = appended.body["messages"][0]["message_id"]
    assert api.get(f"messages/{message_id}/", whole="true").body["content"] == words


@pytest.mark.sampled(15)
@pytest.mark.parametrize(("body", "code", "words"), BAD_APPENDS, ids=lambda value: str(value)[:40])
def test_a_bad_append_is_refused_with_the_place_and_nothing_is_stored(api, conversation, body, code, words):
    reply = api.post(f"conversations/{conversation.conversation_id}/messages/", body)

    assert (reply.status, reply.body["code"]) == (400, code)
    assert words in reply.body["detail"]
    assert reply.body.keys() >= PROBLEM_FIELDS
    assert Message.objects.count() == 2


def test_an_append_behind_another_head_is_a_conflict_that_names_the_present_one(api, conversation):
    path = f"conversations/{conversation.conversation_id}/messages/"
    count = Message.objects.count()

    late = api.post(path, {**said("late"), "expected_seq": count - 1})
    again = api.post(path, {**said("late"), "expected_seq": late.body["context"]["head_seq"]})

    assert (late.status, late.body["code"], late.body["context"]["head_seq"]) == (409, "stale_head", count)
    assert (again.status, again.body["messages"][0]["seq"]) == (201, count + 1)


@pytest.mark.parametrize("form", Format)
def test_the_same_key_stores_once_and_other_content_is_a_conflict_in_every_form(api, conversation, form):
    path = f"conversations/{conversation.conversation_id}/messages/"
    first = api.post(path, {**said("once", idempotency_key="k"), "format": form})

    again = api.post(path, {**said("once", idempotency_key="k"), "format": form})
    other = api.post(path, {**said("twice", idempotency_key="k"), "format": form})

    assert first.body["messages"][0]["message_id"] == again.body["messages"][0]["message_id"]
    assert (first.body["messages"][0]["created"], again.body["messages"][0]["created"]) == (True, False)
    assert (other.status, other.body["code"], other.body["retryable"]) == (409, "conflict", False)


NO_NUMBERS_IN_PATHS = ("{}.0", "%20{}", "{}%20", "+{}", "0{}", "{}_0", "{}e0", "0x{}", "{}%0A", "-{}")
NO_NUMBERS_IN_QUERIES = ("1.0", "+1", " 1", "1_0", "01", "\u0661", "1" * 2000, "many", "0", "-5", ["1", "2"])


@pytest.mark.sampled(15)
@pytest.mark.parametrize(
    ("path", "query", "status", "words"),
    [
        ("conversations/abc/", {}, 400, "conversation_id"),
        *((f"conversations/{form.format('{id}')}/", {}, 400, "conversation_id") for form in NO_NUMBERS_IN_PATHS),
        *((f"messages/msg_{form.format('{id}')}/", {}, 400, "message_id") for form in NO_NUMBERS_IN_PATHS),
        ("conversations/s1/context/", {}, 400, "conversations/find/?session_id="),
        ("conversations/0/", {}, 404, "that you may see"),
        ("conversations/99999999/", {}, 404, "that you may see"),
        (f"conversations/{2**63}/", {}, 404, "that you may see"),
        (f"conversations/{10**30}/messages/", {}, 404, "that you may see"),
        (f"messages/msg_{10**30}/", {}, 404, "that you may see"),
        ("messages/sum_1/", {}, 400, "message_id"),
        ("messages/%00/", {}, 400, "message_id"),
        ("compactions/run_%00/", {}, 400, "run_id"),
        ("compactions/nope/", {}, 404, "that you may see"),
        ("files/file_nope/", {}, 404, "that you may see"),
        ("files/file_nope/content/", {"length": 10**9}, 400, "length"),
        *(("conversations/", {"limit": number}, 400, "limit") for number in NO_NUMBERS_IN_QUERIES),
        ("conversations/", {"after_id": 10**30}, 400, "after_id"),
        ("conversations/", {"colour": "red"}, 400, "colour"),
        ("conversations/s1/", {}, 400, "a conversation's id (conv_7) or a whole number in plain digits, not 's1'; "),
        ("messages/12.5/", {}, 400, "This must be a message's id (msg_12) or a whole number"),
        ("messages/sum_1/", {}, 400, "a message's id (msg_12) or a whole number in plain digits, not 'sum_1'."),
        ("conversations/find/", {}, 400, "session_id"),
        ("conversations/find/", {"session_id": "\x00"}, 400, "session_id"),
        ("conversations/find/", {"session_id": "nope"}, 404, "that you may see"),
        ("matches/", {"limit": 201}, 400, "limit"),
        ("matches/", {"limit": 0}, 400, "limit: This must be at least 1."),
        ("matches/", {"limit": 10_001}, 400, "limit: This must be at most 200."),
        ("matches/", {"under": "s" * 201}, 400, "under: This may have at most 200 characters."),
        ("matches/", {"conversation_ids": list(range(101))}, 400, "This may have at most 100 values."),
        ("matches/", {"sort": "newest"}, 400, "sort: 'newest' is none of relevance, recency, hybrid."),
        ("matches/", {"roles": ["user", "robot"]}, 400, "roles[1]: 'robot' is none of system, user, assistant, tool."),
        # Of a message: whether it exists is not said.
        ("summaries/msg_{id}/expansion/", {}, 404, "the id of a message"),
        ("summaries/msg_0/expansion/", {}, 404, "the id of a message"),
        ("summaries/sum_0/expansion/", {}, 404, "that you may see"),
        ("nowhere/", {}, 404, "All paths: /api/v1/docs/."),
        ("conversations", {}, 404, "Paths end with a slash."),
    ],
)
def test_a_bad_question_is_refused(api, conversation, path, query, status, words):
    if path.startswith("matches/"):
        query = {"query": "hello", **query}

    reply = api.get(path.replace("{id}", str(conversation.conversation_id)), **query)

    assert reply.status == status
    assert words in reply.body["detail"]
    assert reply.body.keys() >= PROBLEM_FIELDS


@pytest.mark.parametrize("path", ["", "x", "v2/conversations/", "v1", "v1/conversations/1/nope/"])
def test_unknown_paths_answer_in_json_without_a_key(client, path):
    response = client.get(f"/api/{path}")

    assert response.status_code == 404
    assert response.json()["code"] == "no_such_path"


@pytest.mark.parametrize("verb", ["PATCH", "DELETE", "OPTIONS"])
def test_a_verb_that_a_path_has_not_is_refused_with_those_it_has(api, verb):
    reply = api.ask(verb, "conversations/")

    assert (reply.status, reply.body["code"]) == (405, "method_not_allowed")
    assert set(reply.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}


def test_head_is_for_what_can_be_got(client, api):
    authorized = {"Authorization": f"Bearer {api.key}"}
    got = client.get("/api/v1/conversations/", headers=authorized)

    head = client.head("/api/v1/conversations/", headers=authorized)
    refused = client.head("/api/v1/expand-queries/", headers=authorized)

    assert (head.status_code, head["Content-Length"], head.content) == (200, got["Content-Length"], b"")
    assert refused.status_code == 405
    assert "HEAD" not in refused["Allow"]


def test_a_form_is_not_json(api):
    response = Client().post(
        "/api/v1/conversations/", {"session_id": "x"}, headers={"Authorization": f"Bearer {api.key}"}
    )

    assert response.status_code == 415
    assert response.json()["code"] == "unsupported_media_type"


def test_what_a_body_says_must_not_stand_in_the_query(api):
    reply = api.ask("POST", "conversations/", {"session_id": "x"}, query={"title": "t"})

    assert (reply.status, reply.body["code"]) == (400, "invalid_params")
    assert not Conversation.objects.exists()


@pytest.mark.parametrize(
    ("verb", "path", "body", "query", "name"),
    [
        ("GET", "matches/", None, {"query": ["a", "b"]}, "query"),
        ("GET", "conversations/{id}/", None, {"conversation_id": "2"}, "conversation_id"),
        ("GET", "conversations/{id}/ledger/", None, {"conversation_id": "2"}, "conversation_id"),
        ("POST", "conversations/{id}/messages/", said("x") | {"conversation_id": 2}, {}, "conversation_id"),
        ("POST", "conversations/", {"session_id": "x"}, {"title": "t"}, "title"),
        ("GET", "session-summaries/", None, {"project": "p", "conversation_id": "1"}, "project"),
    ],
)
def test_a_param_in_the_wrong_place_or_given_twice_is_named_in_errors(api, conversation, verb, path, body, query, name):
    reply = api.ask(verb, path.replace("{id}", str(conversation.conversation_id)), body, query=query)

    assert (reply.status, reply.body["code"]) == (400, "invalid_params")
    assert reply.body["detail"] == f"{name}: {reply.body['errors'][name][0]}"


def test_an_error_of_our_own_is_told_as_one_and_leaves_no_text(api, monkeypatch, caplog):
    def fails(self, **given):
        raise ZeroDivisionError("secret text")

    monkeypatch.setattr("conversations.store.conversations.ConversationStore.list_conversations", fails)
    client = Client(raise_request_exception=False, headers={"Authorization": f"Bearer {api.key}"})

    response = client.get("/api/v1/conversations/")

    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "secret" not in response.content.decode()
    assert "request_failed" in caplog.text


def test_whoever_watches_for_errors_hears_of_them(api, monkeypatch):
    monkeypatch.setattr(
        "conversations.store.conversations.ConversationStore.list_conversations", lambda self, **given: 1 / 0
    )

    with pytest.raises(ZeroDivisionError):
        api.get("conversations/")


def test_an_error_before_any_view_is_told_in_json(client, monkeypatch):
    def fails(self, request):
        raise ZeroDivisionError

    monkeypatch.setattr("django.middleware.common.CommonMiddleware.process_request", fails)
    client = Client(raise_request_exception=False)

    response = client.get("/api/v1/conversations/")

    assert (response.status_code, response.json()["code"]) == (500, "internal")


def test_what_is_immutable_is_answered_304_to_those_who_have_it(conversation):
    headers = {"Authorization": f"Bearer {an_api_key()}"}
    [message_id] = Message.objects.filter(conversation_id=conversation.conversation_id, seq=1).values_list(
        "pk", flat=True
    )
    path = f"/api/v1/messages/{message_id}/"

    first = Client().get(path, headers=headers)
    again = Client().get(path, headers=headers | {"If-None-Match": first["ETag"]})

    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")


def test_an_answer_is_compressed_for_those_who_take_it(conversation):
    headers = {"Authorization": f"Bearer {an_api_key()}", "Accept-Encoding": "gzip"}

    reply = Client().get("/api/v1/conversations/", headers=headers)

    assert reply["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(reply.content))["items"]


def test_a_field_that_is_null_is_left_out(api, conversation):
    body = api.get(f"conversations/{conversation.conversation_id}/").body

    assert conversation.title is None and "title" not in body
