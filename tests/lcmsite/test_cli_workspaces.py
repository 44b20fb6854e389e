"""Workspaces and keys on the command line: nothing is made by a slip, and a key is taken back by any of its names."""

import json
from dataclasses import replace

import pytest

from conversations.audit import AuditLog
from conversations.models import Conversation, Message, Workspace
from conversations.scope import Scope
from lcmsite.models import ApiKey
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.callers import lcm

pytestmark = pytest.mark.django_db


@pytest.fixture
def history(tmp_path):
    file = tmp_path / "history.jsonl"
    file.write_text(json.dumps({"role": "user", "content": "hello"}))
    return str(file)


WRITES = [["open", "trip"], ["key", "create", "laptop"], ["import", "FILE"]]


def test_a_workspace_that_there_is_not_is_made_by_no_verb():
    a_workspace("default")
    a_workspace("holidays")

    for verb in [*WRITES, ["list"], ["grep", "x"], ["key", "list"]]:
        refused = lcm("--json", "--workspace", "hollidays", *verb)

        assert (refused.exit_code, refused.problem["code"]) == (3, "not_found")
        assert "'hollidays'. Existing workspaces: default, holidays." in refused.problem["detail"]
        assert "lcm workspace create" in refused.problem["detail"]
    assert list(Workspace.objects.values_list("name", flat=True)) == ["default", "holidays"]


def test_a_command_shown_for_the_next_page_reads_the_same_workspace(settings):
    a_conversation("hello " * 3000, workspace=a_workspace("pier"))
    described = ("describe", f"msg_{Message.objects.get().pk}", "--token-cap", "300")

    shown = lcm("--workspace", "pier", *described).out
    settings.DEPLOYMENT = replace(settings.DEPLOYMENT, workspace="pier")

    assert "There is more: lcm --workspace pier describe msg_" in shown
    assert "There is more: lcm describe msg_" in lcm(*described).out


@pytest.mark.parametrize("verb", WRITES, ids=" ".join)
def test_the_default_workspace_is_made_by_whoever_writes_first(history, verb):
    assert lcm(*(history if word == "FILE" else word for word in verb)).exit_code == 0
    assert Workspace.objects.get().name == "default"


def test_a_key_is_taken_back_by_its_id_its_beginning_or_the_key_itself():
    for name_of in (
        lambda issued: str(issued["record"]["api_key_id"]),
        lambda issued: issued["record"]["prefix"],
        lambda issued: issued["key"][:8],
        lambda issued: issued["key"],
    ):
        issued = lcm("--json", "key", "create", "laptop").json

        revoked = lcm("--json", "key", "revoke", name_of(issued)).json

        assert revoked["api_key_id"] == issued["record"]["api_key_id"]
        assert revoked["revoked_at"]


def test_a_beginning_that_several_keys_share_takes_back_none_and_lists_them():
    first, second = (lcm("--json", "key", "create", name).json["record"] for name in ("laptop", "server"))
    ApiKey.objects.update(prefix="lcm_sameeeee")

    refused = lcm("--json", "key", "revoke", "lcm_same")

    assert (refused.exit_code, refused.problem["code"]) == (2, "ambiguous_key")
    for record in (first, second):
        assert f"{record['api_key_id']} (lcm_sameeeee…, '{record['name']}')" in refused.problem["detail"]
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()


@pytest.mark.parametrize("name", ["lcm_", "", "0", "9" * 30, "lcm_\x00", "nope", "laptop"])
def test_what_names_no_key_takes_back_none(name):
    lcm("key", "create", "laptop")

    refused = lcm("--json", "key", "revoke", name)

    assert (refused.exit_code, refused.problem["code"]) == (3, "not_found")
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()


def test_opening_a_conversation_that_is_there_says_what_was_left_as_it_was():
    lcm("open", "trip", "--title", "To Rome")

    again = lcm("open", "trip", "--title", "To Paris", "--metadata", '{"a": 1}')
    same = lcm("open", "trip", "--title", "To Rome")

    assert (again.exit_code, same.exit_code) == (0, 0)
    assert "not changed: title, metadata" in again.err
    assert same.err == ""
    assert Conversation.objects.get().title == "To Rome"


def test_a_workspace_is_made_once_on_record_under_a_name_that_pages_can_name():
    made = lcm("--json", "workspace", "create", "team").json
    again = lcm("--json", "workspace", "create", "team")
    slashed = lcm("--json", "workspace", "create", "a/b")

    assert [each["name"] for each in lcm("--json", "workspace", "list").json["items"]] == ["team"]
    assert again.problem["code"] == "conflict" and slashed.problem["code"] == "invalid"
    [entry] = AuditLog(Scope(made["workspace_id"])).list_acts()
    assert (entry.actor, entry.act, entry.target) == ("operator", "create_workspace", "team")
