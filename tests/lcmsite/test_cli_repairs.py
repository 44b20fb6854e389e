"""A store is broken, and a person at a terminal finds it out, has it repaired, and takes it back."""

from __future__ import annotations

import re

import pytest

from conversations.models import Conversation, Message
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.callers import an_api_key, lcm


@pytest.fixture
def conversation_id(db: None) -> int:
    conversation_id = a_conversation("hello", "good day", session_id="harbour").conversation_id
    Conversation.objects.filter(pk=conversation_id).update(total_tokens=1000, active_tokens=1000)
    return conversation_id


def total_tokens(conversation_id: int) -> int:
    return Conversation.objects.get(pk=conversation_id).total_tokens


def test_what_is_broken_is_found_repaired_and_undone(conversation_id):
    check = lcm("check", "harbour")
    reports = lcm("--json", "reports")
    report_id = reports.json["items"][0]["report_id"]
    planned = lcm("plan-repairs", report_id)
    repair_id = lcm("--json", "plan-repairs", report_id).json["repair_id"]

    approved = lcm("approve-repairs", repair_id, "[1, 2]")
    applied = lcm("apply-repairs", repair_id)

    assert (check.exit_code, reports.exit_code) == (1, 0)
    assert f"lcm plan-repairs {report_id}" in check.out
    assert "recount total_tokens" in planned.out
    assert f"lcm approve-repairs {re.search('repair_[0-9a-f]+', planned.out)[0]} 1,2" in planned.out
    assert "by operator" in approved.out and f"lcm apply-repairs {repair_id}" in approved.out
    assert "before" in applied.out and "lcm a" not in applied.out
    assert (applied.exit_code, lcm("check", "harbour").exit_code) == (0, 0)
    assert total_tokens(conversation_id) < 1000

    undone = lcm("undo-repairs", repair_id)

    assert undone.exit_code == 0
    assert "undone at" in undone.out and "after" not in undone.out
    assert total_tokens(conversation_id) == 1000


def test_a_repair_that_was_overtaken_is_refused_with_a_status_that_says_so(conversation_id):
    report_id = lcm("--json", "check", "harbour").json["report_id"]
    repair_id = lcm("--json", "plan-repairs", report_id).json["repair_id"]
    lcm("approve-repairs", repair_id, "[1, 2]")
    Conversation.objects.filter(pk=conversation_id).update(total_tokens=999)

    applied = lcm("apply-repairs", repair_id)

    assert applied.exit_code == 1
    assert "refused" in applied.out and "stale" in applied.out
    assert total_tokens(conversation_id) == 999


def test_a_check_names_its_workspace_and_can_cover_every_workspace(conversation_id):
    elsewhere = a_workspace("holidays")
    a_conversation("good day", session_id="beach", workspace=elsewhere)

    here, there = lcm("check"), lcm("--workspace", "holidays", "check")
    live = lcm("ledger", "verify", "--live")
    everywhere, everything = lcm("check", "--all-workspaces"), lcm("--json", "check", "--all-workspaces")
    all_live = lcm("ledger", "verify", "--live", "--all-workspaces")

    assert (here.exit_code, there.exit_code) == (1, 0)
    assert "checked in workspace default: not everything holds" in here.out
    assert "1 message checked in workspace holidays: everything holds" in there.out
    assert "workspace default of the database: " in live.out
    assert everywhere.exit_code == everything.exit_code == 1
    assert "workspace default: not everything holds" in everywhere.out
    assert "workspace holidays: everything holds" in everywhere.out
    found = [(each["workspace"], each["result"]["is_clean"]) for each in everything.json["workspaces"]]
    assert found == [("default", False), ("holidays", True)]
    assert all_live.exit_code == 1 and "workspace holidays of the database: " in all_live.out


def test_a_check_of_every_workspace_is_for_the_site_administrator_and_names_no_conversation(conversation_id):
    key = an_api_key(a_workspace("default"), "admin")

    assert lcm("--api-key", key, "check", "--all-workspaces").exit_code == 5
    for words in ("check harbour", "ledger verify --live harbour", "ledger verify x.jsonl"):
        assert lcm(*words.split(), "--all-workspaces").exit_code == 2
    assert "lcm anchor verify" in lcm("ledger", "verify", "--live", "--all-workspaces", "--expect", "0" * 64).err


def test_damage_that_only_a_check_of_its_conversation_has_found_is_explained(conversation_id):
    lcm("rebuild", "harbour")
    assert lcm("check").exit_code == 0
    assert "`lcm reports`" not in lcm("integrity").out
    Conversation.objects.filter(pk=conversation_id).update(total_tokens=1000)
    assert lcm("check", "harbour").exit_code == 1

    shown = lcm("integrity").out

    assert "are those of the newest check of everything" in shown
    assert "Checks of single conversations have found more" in shown and "`lcm reports`" in shown


def test_a_check_can_be_left_to_a_worker(conversation_id):
    scan = lcm("--json", "check", "harbour", "--background", "--with-plan").json

    assert (scan["state"], scan["with_plan"], scan["conversation_id"]) == ("queued", True, conversation_id)
    assert lcm("--json", "scan", str(scan["scan_id"])).json == scan


def test_what_is_withheld_by_hand_is_listed_and_released(conversation_id):
    id = f"msg_{Message.objects.filter(conversation_id=conversation_id).first().pk}"

    held = lcm("--json", "quarantine", id, "It was altered.").json
    listed = lcm("quarantines")
    released = lcm("release", str(held["quarantine_id"]))

    assert id in listed.out
    assert released.exit_code == 0
    assert lcm("quarantines").out.strip() == "Nothing."
