"""Work that takes more than one call, begun and carried on through one face and another."""

import json

import pytest

from conversations.models import Conversation
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key, lcm


def test_a_search_is_of_one_conversation_or_of_all(world):
    a_conversation("another harbour", session_id="other")

    everywhere = lcm("--json", "grep", "harbour", "--sort", "recency").json["items"]
    in_one = lcm("--json", "grep", "other", "--mode", "full_text", "harbour").json["items"]

    assert {match["conversation_id"] for match in in_one} == {in_one[0]["conversation_id"]}
    assert len({match["conversation_id"] for match in everywhere}) == 2


@pytest.mark.parametrize("of_a_range", [False, True], ids=["a summary", "a range"])
def test_an_expansion_goes_on_where_its_page_stopped_on_the_command_line_too(world, of_a_range):
    whole = ["expand-range", "harbour", "2", "41", "--only-messages"]
    arguments = [
        *(whole if of_a_range else ["expand", world["summary_id"], "--include-messages"]),
        "--token-cap",
        "400",
    ]
    pages = []
    page = lcm("--json", *arguments).json
    while page.get("next_cursor"):
        pages += page["items"]
        page = lcm("--json", *arguments, f"--cursor={page['next_cursor']}").json
    pages += page["items"]

    seqs = [item["first_seq"] for item in pages if item["complete"]]
    assert seqs == (list(range(2, 42)) if of_a_range else sorted(set(seqs)))
    assert len(pages) > 2


def test_a_check_with_findings_says_so_by_its_exit_status(world):
    clean = lcm("check", "harbour")
    # As if somebody had changed a counter past us: messages themselves the database defends.
    Conversation.objects.update(active_tokens=1)

    broken = lcm("check", "harbour")
    told = lcm("--json", "check")

    assert (clean.exit_code, broken.exit_code, told.exit_code) == (0, 1, 1)
    assert "counters" in broken.out
    assert told.json["is_clean"] is False


def test_a_compaction_may_be_left_to_a_worker(world):
    path = f"conversations/{world['conversation_id']}/compactions/"

    reply = Api(an_api_key()).post(path, {"background": True})
    shown = lcm("--json", "compact", "harbour", "--background")

    assert reply.status == 202
    assert reply.body["state"] == "queued"
    assert shown.json["job_id"] == reply.body["job_id"]


def test_a_plan_is_told_carried_out_once_and_then_refused_alike_everywhere(world):
    a_conversation(*(f"We set port {5000 + n} for service-{n}. " * 90 for n in range(40)), session_id="ports")

    plan = lcm("--json", "plan", "ports").json
    told = lcm("show-plan", plan["plan_id"])
    done = lcm("--json", "execute-plan", plan["plan_id"])
    reply = Api(an_api_key()).post(f"plans/{plan['plan_id']}/execution/", {})
    again = lcm("--json", "execute-plan", plan["plan_id"])

    assert plan["step_count"] == len(plan["steps"]) > 0
    assert "leaf summary of [1-" in told.out
    assert done.json["details"]["plan_id"] == plan["plan_id"]
    assert (reply.status, reply.body["code"]) == (409, "plan_executed")
    assert reply.body["context"] == {"plan_id": plan["plan_id"], "run_id": done.json["run_id"]}
    assert (again.exit_code, again.problem) == (4, reply.body)


def test_a_flush_may_be_left_to_a_worker(world):
    path = f"conversations/{world['conversation_id']}/flushes/"

    reply = Api(an_api_key()).post(path, {"host_reference": "second", "background": True})
    shown = lcm("flush", "harbour", "third", "--background")

    assert reply.status == 202
    assert (reply.body["boundary"]["last_seq"], reply.body["job"]["state"]) == (42, "queued")
    assert "third" in shown.out
    assert "queued" in shown.out


def test_what_is_not_covered_shows_in_the_exit_status(world):
    covered = lcm("coverage", "harbour")
    keys = json.dumps(["call 1", "call \u2028 2"])

    lacking = lcm("coverage", "harbour", "--idempotency-keys", keys)

    assert (covered.exit_code, lacking.exit_code) == (0, 1)
    assert "Everything can be recovered." in covered.out
    assert "no message has the key call" in lacking.out
