"""Files over REST as they are, and on the command line."""

from __future__ import annotations

import hashlib
import json
import random

import pytest
from django.test import Client

from conversations.files.uploads import UploadService
from conversations.models import LargeFile, Upload, UploadChunk
from conversations.scope import Scope
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.callers import Api, an_api_key, lcm

pytestmark = pytest.mark.django_db
CONTENT = random.Random(3).randbytes(300_000)
OCTETS = "application/octet-stream"


@pytest.fixture
def conversation_id():
    return a_conversation(session_id="files").conversation_id


def ask(verb, path, body=b"", key=None, **headers):
    headers = {"Authorization": f"Bearer {key or an_api_key()}", **headers}
    return Client().generic(verb, f"/api/v1/{path}", body, content_type=OCTETS, headers=headers)


def body_of(response):
    return b"".join(response.streaming_content)


@pytest.fixture
def file_id(conversation_id):
    path = f"conversations/{conversation_id}/files/?file_name=a%2Fb%22.bin&mime_type=x%2Fy"
    return json.loads(ask("POST", path, CONTENT).content)["file_id"]


def test_a_file_is_taken_and_given_as_it_is(file_id):
    response = ask("GET", f"files/{file_id}/download/")

    record = LargeFile.objects.get()
    assert (record.file_name, record.mime_type, record.byte_size) == ('a/b".bin', "x/y", len(CONTENT))
    assert body_of(response) == CONTENT
    assert response["Content-Type"] == OCTETS
    assert response["Content-Length"] == str(len(CONTENT))
    # Browsers save it, and never show it as a page.
    assert response["Content-Disposition"] == "attachment; filename*=UTF-8''b%22.bin"
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["ETag"] == f'"{hashlib.sha256(CONTENT).hexdigest()}"'


@pytest.mark.parametrize(
    ("wanted", "status", "said", "content"),
    [
        ("bytes=0-9", 206, "bytes 0-9/300000", CONTENT[:10]),
        ("bytes=299990-", 206, "bytes 299990-299999/300000", CONTENT[-10:]),
        ("bytes=299990-999999", 206, "bytes 299990-299999/300000", CONTENT[-10:]),
        ("bytes=9-0", 200, None, CONTENT),
        ("bytes=-5", 200, None, CONTENT),
        ("bytes=0-1,5-6", 200, None, CONTENT),
        ("lines=1-2", 200, None, CONTENT),
    ],
)
def test_a_range_of_a_file_is_given(file_id, wanted, status, said, content):
    response = ask("GET", f"files/{file_id}/download/", Range=wanted)

    assert (response.status_code, response.get("Content-Range")) == (status, said)
    assert body_of(response) == content


def test_a_download_is_refused_as_everything_is(file_id):
    beyond = ask("GET", f"files/{file_id}/download/", Range="bytes=300000-")
    unknown = ask("GET", "files/file_0000000000000000/download/")

    assert (beyond.status_code, json.loads(beyond.content)["code"]) == (416, "no_such_range")
    # So that whoever goes on with a download knows that it is complete.
    assert beyond["Content-Range"] == "bytes */300000"
    assert unknown.status_code == 404


def test_chunks_come_as_they_are_and_need_the_right_to_write(conversation_id):
    api = Api(an_api_key())
    upload = api.post(f"conversations/{conversation_id}/uploads/", {"byte_size": 5}).body

    refused = ask("PUT", f"uploads/{upload['upload_id']}/chunks/0/", b"12345", key=an_api_key(None, "read"))
    twice = ask("PUT", f"uploads/{upload['upload_id']}/chunks/0/?offset=0", b"12345")
    taken = ask("PUT", f"uploads/{upload['upload_id']}/chunks/0/", b"12345")
    file = api.post(f"uploads/{upload['upload_id']}/finish/", {})

    assert (refused.status_code, twice.status_code, taken.status_code, file.status) == (403, 400, 200, 201)
    assert body_of(ask("GET", f"files/{file.body['file_id']}/download/")) == b"12345"


def test_bytes_are_no_body_for_what_takes_no_file(conversation_id):
    reply = ask("POST", f"conversations/{conversation_id}/messages/", b"{}")

    assert reply.status_code == 415


def test_upload_goes_on_where_it_stopped_and_download_gives_the_same_bytes(conversation_id, tmp_path, settings):
    settings.LCM = {**settings.LCM, "upload_chunk_bytes": 65536}
    source, target = tmp_path / "source.bin", tmp_path / "target.bin"
    source.write_bytes(CONTENT)
    service = UploadService.from_settings(Scope(a_workspace().pk))
    begun = service.begin(
        conversation_id=conversation_id,
        byte_size=len(CONTENT),
        file_name="source.bin",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
    )
    service.put_chunk(upload_id=begun.upload_id, offset=65536, content=CONTENT[65536:131072])

    stored = lcm("--json", "upload", "files", str(source))
    fetched = lcm("--json", "download", stored.json["file_id"], str(target))
    again = lcm("download", stored.json["file_id"], str(target))

    assert Upload.objects.get().file_id == stored.json["file_id"]
    assert not UploadChunk.objects.exists()
    assert target.read_bytes() == CONTENT
    assert fetched.json["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert (again.exit_code, "[file_exists]" in again.err) == (4, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["files", "source.bin", "target.bin"]


def test_a_download_may_go_to_standard_output(conversation_id):
    file_id = json.loads(ask("POST", f"conversations/{conversation_id}/files/", b"one\ntwo").content)["file_id"]

    assert lcm("download", file_id, "-").out == "one\ntwo"


def test_what_cannot_be_uploaded_or_downloaded_is_told(conversation_id, tmp_path):
    unreadable = lcm("upload", "files", str(tmp_path / "nothing"))
    unknown = lcm("download", "file_0000000000000000")
    reader = lcm("--api-key", an_api_key(None, "read"), "upload", "files", "/dev/null")

    assert (unreadable.exit_code, "cannot be read" in unreadable.err) == (2, True)
    assert unknown.exit_code == 3
    assert reader.exit_code == 5


def test_a_message_too_long_says_so_in_the_answer_and_comes_back_whole(conversation_id):
    api = Api(an_api_key())
    text = "".join(f"{n},{n * n}\n" for n in range(30_000))

    answer = api.post(f"conversations/{conversation_id}/messages/", {"messages": [{"role": "user", "content": text}]})
    (moved,) = answer.body["moved"]
    message_id = moved["message_id"]

    assert (moved["field"], moved["byte_size"]) == ("content", len(text))
    assert f'id="{moved["file_id"]}"' in api.get(f"messages/{message_id}/").body["content"]
    assert api.get(f"messages/{message_id}/", whole="true").body["content"] == text
