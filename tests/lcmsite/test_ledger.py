"""The ledger as people meet it: on the command line and over REST."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from django.test import Client

from conversations.models import AuditEntry, ContextItem, Conversation
from tests.conversations.ledger.forging import bytes_of
from tests.conversations.ledger.ledgers import a_full_conversation, another_database, exported, objects_in
from tests.factories import a_conversation
from tests.integrity.breaking import breaking
from tests.lcmsite.callers import Api, an_api_key, lcm


@pytest.fixture(scope="module")
def conversation_id(module_rows: None, module_files: Path) -> int:
    """A conversation with something of every sort."""
    return a_full_conversation()


def test_out_checked_and_back_again(conversation_id, tmp_path):
    path = tmp_path / "everything.jsonl"

    written = lcm("--json", "ledger", "export", "everything", "-o", str(path))
    checked = lcm("--json", "ledger", "verify", str(path))
    another_database()
    imported = lcm("--json", "ledger", "import", str(path))
    again = lcm("--json", "ledger", "export", "--all", "-o", str(tmp_path / "again.jsonl"))

    assert (written.exit_code, checked.exit_code, imported.exit_code, again.exit_code) == (0, 0, 0, 0)
    assert path.read_bytes() == (tmp_path / "again.jsonl").read_bytes()
    assert written.json["line_hash"] == checked.json["line_hash"] == imported.json["line_hash"]
    assert imported.json["conversations"][0]["session_id"] == "everything"


def test_it_is_written_to_standard_output_and_verified_from_standard_input(conversation_id):
    written = lcm("ledger", "export", str(conversation_id))

    checked = lcm("ledger", "verify", "-", stdin=written.out.encode("ascii"))

    assert written.out.encode("ascii") == exported(conversation_id)
    assert checked.exit_code == 0 and "everything holds" in checked.out


def test_an_export_that_broke_off_is_gone_on_with(conversation_id, tmp_path):
    whole = exported(conversation_id)
    path = tmp_path / "part.jsonl"
    path.write_bytes(whole[: len(whole) // 2])

    refused = lcm("--json", "ledger", "export", "everything", "-o", str(path))
    resumed = lcm("ledger", "export", "everything", "-o", str(path), "--resume")

    assert (refused.exit_code, refused.problem["code"]) == (4, "file_exists")
    assert resumed.exit_code == 0
    assert path.read_bytes() == whole


def test_a_file_that_is_no_ledger_is_said_to_be_none_in_one_line(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("# A title\n\nand many lines\n" * 50)

    checked = lcm("ledger", "verify", str(path))
    as_json = lcm("--json", "ledger", "verify", str(path))

    assert checked.exit_code == 1
    assert [line for line in checked.out.splitlines() if line.startswith("line ")] == [
        "line 1: this is not a ledger: it does not begin with a header [malformed_line]"
    ]
    assert as_json.json["finding_count"] == 1


def test_a_forged_ledger_with_characters_that_nothing_prints_is_refused_with_a_sentence(conversation_id, tmp_path):
    objects = objects_in(exported(conversation_id))
    next(each for each in objects if each["type"] == "file")["file_name"] = "a\ud800"
    objects[1] = {"type": "conversation", "\ud800\x1b[2J": 1, **objects[1]}
    path = tmp_path / "forged.jsonl"
    path.write_bytes(bytes_of(objects))
    another_database()

    checked = lcm("ledger", "verify", str(path))
    imported = lcm("--json", "ledger", "import", str(path))

    assert (checked.exit_code, imported.exit_code) == (1, 2)
    assert "file_name has an invalid value" in checked.out
    assert "\x1b[2J" not in checked.out
    assert imported.problem["code"] == "ledger_does_not_verify"


def test_findings_are_listed_and_show_in_the_exit_status(conversation_id, tmp_path):
    path = tmp_path / "forged.jsonl"
    path.write_bytes(exported(conversation_id).replace(b"harbour", b"Harbour", 1))

    shown, told = lcm("ledger", "verify", str(path)), lcm("--json", "ledger", "verify", str(path))
    refused = lcm("--json", "ledger", "import", str(path), "--as", "copy")

    assert (shown.exit_code, told.exit_code) == (1, 1)
    assert "line 3: the content of message 1 does not match its hash [content_hash_mismatch]" in shown.out
    assert "not everything holds" in shown.out
    assert told.json["by_code"] == {"line_hash_mismatch": 1, "content_hash_mismatch": 1}
    assert (refused.exit_code, refused.problem["code"]) == (2, "ledger_does_not_verify")


def test_what_is_stored_is_verified_too(conversation_id):
    clean = lcm("ledger", "verify", "--live", "everything")
    breaking("UPDATE messages SET content = 'x' WHERE conversation_id = %s AND seq = 2", conversation_id)
    altered = lcm("--json", "ledger", "verify", "--live")

    assert (clean.exit_code, altered.exit_code) == (0, 1)
    assert altered.json["by_code"] == {"content_hash_mismatch": 1}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["export"], "Name a conversation"),
        (["export", "everything", "--all"], "Name a conversation"),
        (["export", "everything", "--resume"], "name it with -o"),
        (["export", "nobody"], "There is no conversation"),
        (["export", "everything", "-o", "/nowhere/at/all"], "cannot be"),
        (["verify"], "Name a file"),
        (["verify", "/nowhere"], "cannot be"),
        (["import", "/nowhere"], "cannot be"),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(conversation_id, arguments, sentence):
    run = lcm("ledger", *arguments)

    assert run.exit_code in (2, 3)
    assert sentence in run.err and run.out == ""


def test_to_import_takes_an_admin_and_to_export_a_reader(conversation_id, tmp_path):
    path = tmp_path / "everything.jsonl"
    path.write_bytes(exported(conversation_id))
    reader, writer = an_api_key(None, "read"), an_api_key(None, "write")

    written = lcm("--api-key", reader, "ledger", "export", "everything")
    refused = lcm("--json", "--api-key", writer, "ledger", "import", str(path), "--as", "copy")

    assert written.out.encode("ascii") == path.read_bytes()
    assert (refused.exit_code, refused.problem["code"]) == (5, "forbidden")


def test_over_rest_it_comes_line_by_line(conversation_id):
    key = an_api_key(None, "read")
    path = f"conversations/{conversation_id}/ledger/"

    answer = Client().get(f"/api/v1/{path}", headers={"Authorization": f"Bearer {key}"})

    assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/x-ndjson")
    assert b"".join(answer.streaming_content) == exported(conversation_id)
    assert [Api(key).get("conversations/x/ledger/").status, Api(key).get(path, unknown="x").status] == [400, 400]


def test_a_query_cannot_name_another_conversation_than_the_path(conversation_id):
    api, other = Api(an_api_key(None, "read")), a_conversation("hello").conversation_id
    refused = api.get(f"conversations/{conversation_id}/ledger/", conversation_id=other)

    assert (refused.status, refused.body["detail"]) == (400, "conversation_id: This is given in the path already.")


def test_rebuild_says_what_it_changed_and_an_act_tells_of_it(conversation_id):
    breaking("DELETE FROM context_items WHERE conversation_id = %s", conversation_id)
    breaking("UPDATE conversations SET total_tokens = 1 WHERE conversation_id = %s", conversation_id)

    first = lcm("--json", "rebuild", "everything")
    second = lcm("--json", "rebuild", "everything")

    assert (first.exit_code, first.json["is_changed"], second.json["is_changed"]) == (0, True, False)
    assert first.json["items_added"] == ContextItem.objects.filter(conversation_id=conversation_id).count() > 0
    assert [each["name"] for each in first.json["counters"]] == ["total_tokens"]
    acts = list(AuditEntry.objects.filter(act="rebuild").order_by("audit_id"))
    assert [act.detail["added"] for act in acts] == [first.json["items_added"], 0]
    assert json.dumps(acts[0].detail).count("boats") == 0
    assert Conversation.objects.get(pk=conversation_id).total_tokens > 1
