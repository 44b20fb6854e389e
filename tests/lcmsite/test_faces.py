"""One catalogue, many faces: the same question has the same answer whoever is asked, and the schema tells the truth."""

import copy
import inspect
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import jsonschema
import pytest
from django.db.models import F
from django.test import override_settings

from compaction.engine import CompactionEngine
from compaction.hosts import HostCompaction
from compaction.plans import CompactionPlans
from conversations.cold import ColdBlockDamaged
from conversations.errors import LcmError
from conversations.large_files import LargeFileService
from conversations.models import Conversation, Message, Summary
from conversations.scope import Scope
from conversations.uploads import UploadService
from integrity.checker import IntegrityChecker
from integrity.repairs.applying import Repairs
from integrity.repairs.quarantines import Quarantines
from integrity.retention.erasure import Erasures
from lcmsite.adapters.allowances import Allowance, TooManyRequests
from lcmsite.adapters.catalogue import CATALOGUE
from lcmsite.adapters.operation import placeholders
from lcmsite.adapters.problems import problem_of
from lcmsite.adapters.results import as_json
from lcmsite.types import KeyScope
from retrieval.assembler import ContextAssembler
from retrieval.delegation.expand_query import Delegation
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, a_workspace
from tests.lcmsite.callers import Api, an_api_key, as_arguments, lcm
from tests.made_once import made_once

READS = [operation for operation in CATALOGUE if operation.scope is KeyScope.READ or operation.verb == "GET"]
WRITES = [operation for operation in CATALOGUE if operation.scope is not KeyScope.READ]


@pytest.fixture(scope="module")
def harbour_world(django_db_setup, django_db_blocker, tmp_path_factory):
    """A compacted conversation with a tool call, a file and a run: what there is to ask about, where the file lies."""
    files = tmp_path_factory.mktemp("files")
    with made_once(django_db_blocker):
        with override_settings(MEDIA_ROOT=files):
            world = _a_world()
        yield world, files


@pytest.fixture
def world(harbour_world, db, settings):
    """What there is to ask about; what a test changes, it changes for itself alone."""
    world, settings.MEDIA_ROOT = harbour_world
    return copy.deepcopy(world)


def _a_world():
    scope = Scope(a_workspace().pk)
    conversation = a_conversation(
        *(f"Message {number} about the harbour and its boats. " * 30 for number in range(40)), session_id="harbour"
    )
    conversation_id = conversation.conversation_id
    a_store().append_messages(
        conversation_id=conversation_id,
        messages=[
            replace(a_tool_call("c1", path="boats.txt"), idempotency_key="call 1"),
            a_tool_result("c1", "seven boats \ud800\x00"),
        ],
    )
    CompactionEngine.from_settings(scope).compact(conversation_id=conversation_id)
    file = LargeFileService.from_settings(scope).store(conversation_id=conversation_id, content=b"a,b\n1,2\n")
    summary_id = Summary.objects.filter(kind="leaf").first().summary_id
    preview = Erasures.from_settings(scope).preview_erasure(conversation_id=conversation_id, from_seq=3, to_seq=5)
    return {
        "conversation_id": conversation_id,
        "session_id": "harbour",
        "message_id": Message.objects.order_by("seq").last().pk,
        "run_id": CompactionEngine.from_settings(scope).list_runs(conversation_id=conversation_id)[0].run_id,
        "job_id": CompactionEngine.from_settings(scope).request(conversation_id=conversation_id).job_id,
        "plan_id": CompactionPlans.from_settings(scope).plan(conversation_id=conversation_id).plan_id,
        "summary_id": summary_id,
        "id": summary_id,
        "file_id": file.file_id,
        "receipt_id": _receipt(scope, conversation_id, 2000),
        "other": _receipt(scope, conversation_id, 1000),
        "host_reference": HostCompaction.from_settings(scope)
        .record_boundary(conversation_id=conversation_id, host_reference="compaction 1 · é")
        .host_reference,
        "from_seq": 2,
        "to_seq": 41,
        "question": "What was said about the harbour?",
        "grant_id": Delegation.from_settings(scope).expand_query(question="Boats?", ids=[summary_id]).grant.grant_id,
        "name": "chat",
        "erasure_id": preview.erasure_id,
        "confirmation": preview.confirmation,
        "query": "harbour boats",
        # Of writes: such as change nothing, so that each face finds what the last one left.
        "overrides": {"fresh_tail_count": 5},
        "messages": [{"role": "user", "content": "again", "idempotency_key": "once"}],
        "content": "YSxiCg==",
        **_trust(scope, conversation_id),
        "upload_id": _upload(scope, conversation_id),
        "byte_size": 4,
        "offset": 0,
    }


def _trust(scope, conversation_id):
    """A plan that was applied, one that is approved, a scan that waits, and a message that is withheld."""
    message_id = Message.objects.get(conversation_id=conversation_id, seq=2).pk
    held = Quarantines.from_settings(scope).quarantine(id=f"msg_{message_id}", reason="a test")
    checker, repairs = IntegrityChecker.from_settings(scope), Repairs.from_settings(scope)
    conversation = Conversation.objects.filter(pk=conversation_id)
    plans = []
    for _ in range(2):
        conversation.update(total_tokens=F("total_tokens") + 1)
        report_id = checker.run(conversation_id=conversation_id).report_id
        plans.append(checker.plan_repairs(report_id=report_id).repair_id)
        repairs.approve_steps(repair_id=plans[-1], ordinals=[1])
        if len(plans) == 1:
            repairs.apply_plan(repair_id=plans[0])
    conversation.update(total_tokens=F("total_tokens") - 1)
    return {
        "scan_id": checker.request(conversation_id=conversation_id).scan_id,
        "report_id": report_id,
        "applied": plans[0],
        "repair_id": plans[1],
        "ordinals": [1],
        "quarantine_id": held.quarantine_id,
        "reason": "a test",
    }


# What an operation is asked about instead of what its params are called after.
INSTEAD = {"lcm_undo_repairs": {"repair_id": "applied"}}


def _upload(scope, conversation_id):
    uploads = UploadService.from_settings(scope)
    begun = uploads.begin(conversation_id=conversation_id, byte_size=4, file_name="a.csv")
    uploads.put_chunk(upload_id=begun.upload_id, offset=0, content=b"a,b\n")
    return begun.upload_id


def _receipt(scope, conversation_id, budget):
    assembler = ContextAssembler.from_settings(scope)
    return assembler.assemble(conversation_id=conversation_id, budget=budget, keep_receipt=True).receipt_id


# What is said beyond what has to be said, so that options are asked through every face, too.
OPTIONS = {
    "lcm_list": {"limit": 5, "after_id": 0},
    "lcm_messages": {"after_seq": 38, "limit": 3},
    "lcm_runs": {"limit": 1, "outcome": "compacted", "reason": "manual"},
    "lcm_activity": {"hours": 2},
    "lcm_jobs": {"state": "queued", "before_id": 1_000_000, "limit": 1},
    "lcm_plans": {"limit": 1},
    "lcm_boundaries": {"limit": 1},
    "lcm_coverage": {"host_reference": "compaction 1 · é", "idempotency_keys": ["call 1"]},
    "lcm_assemble": {
        "budget": 2000,
        "query": "boats",
        "format": "anthropic",
        "reserve": 100,
        "as_of": "42",
        "keep_receipt": True,
    },
    "lcm_recall": {"budget": 8000, "share": 0.5},
    "lcm_message": {"whole": True},
    "lcm_read_file": {"offset": 2, "length": 3},
    "lcm_read_lines": {"first_line": 2, "line_count": 1},
    "lcm_uploads": {"limit": 1},
    "lcm_files": {"limit": 1},
    "lcm_receipts": {"limit": 1},
    "lcm_grep": {
        "mode": "regex",
        "scope": "all",
        "limit": 3,
        "since": "2020-01-01",
        "until": "2100-01-01T00:00:00+02:00",
        "roles": ["user", "assistant"],
        "part_types": ["text"],
        "from_seq": 2,
        "to_seq": 30,
        "sort": "recency",
        "max_tokens": 500,
    },
    "lcm_expand": {"depth": -1, "include_messages": True, "token_cap": 500, "keep_ends": True},
    "lcm_expand_range": {"depth": -1, "include_messages": True, "token_cap": 500, "keep_ends": True},
    "lcm_expand_query": {"query": "harbour", "depth": 2, "token_cap": 300},
    "lcm_impact": {"limit": 1},
    "lcm_grants": {"limit": 1},
    "lcm_set_retention": {"cold_after_days": 90},
    "lcm_preview_erasure": {"from_seq": 2, "to_seq": 4, "message_ids": [], "file_ids": []},
    "lcm_check": {"extent": "full", "with_plan": False},
    "lcm_reports": {"extent": "full", "whole": True, "limit": 1},
    "lcm_repair_plans": {"state": "approved", "limit": 1},
    "lcm_report": {"code": "counters_are_recounts", "after_id": 0, "limit": 1},
    "lcm_quarantines": {"released": True, "before_id": 1_000_000, "limit": 5},
    "lcm_audit": {"act": "quarantine", "target": "msg_2", "before_id": 1_000_000, "limit": 5},
}


def _questions(operation, world):
    """The params of the shortest question, and those of a fuller one."""
    fields = operation.params.prototype().fields
    world = world | {name: world[other] for name, other in INSTEAD.get(operation.tool, {}).items()}
    short = {
        name: world[name] for name, field in fields.items() if field.required or name in placeholders(operation.path)
    }
    yield short
    if operation.tool in OPTIONS:
        yield short | OPTIONS[operation.tool]
    if operation.everywhere:
        yield {name: value for name, value in short.items() if fields[name].required}


def _of_service(operation, given):
    service = operation.service.from_settings(Scope(a_workspace().pk))
    return json.loads(as_json(getattr(service, operation.method)(**operation.params.accepted(given))))


FLEETING = ("started_at", "finished_at", "grant", "milliseconds", "report_id")


def _lasting(value):
    """The answer without what is another every time it is asked."""
    if isinstance(value, dict):
        return {name: _lasting(each) for name, each in value.items() if name not in FLEETING}
    return [_lasting(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize("operation", READS, ids=lambda operation: operation.tool)
def test_service_rest_and_command_line_give_one_answer(world, operation):
    api = Api(an_api_key(None, operation.scope))

    for given in _questions(operation, world):
        expected = _lasting(_of_service(operation, given))
        reply = api.perform(operation, given)
        shown = lcm("--json", *as_arguments(operation, given))

        assert reply.status == operation.status
        assert _lasting(reply.body) == expected
        assert shown.exit_code == 0, shown.err
        assert _lasting(shown.json) == expected


@pytest.mark.parametrize("operation", READS, ids=lambda operation: operation.tool)
def test_every_answer_can_be_read_on_a_terminal(world, operation):
    for given in _questions(operation, world):
        shown = lcm(*as_arguments(operation, given))

        assert shown.exit_code == 0, shown.err
        assert shown.out.strip()
        assert "\x00" not in shown.out


ABOUT_ONE_THING = [operation for operation in CATALOGUE if placeholders(operation.path) and not operation.of_the_site]


@pytest.mark.parametrize("operation", ABOUT_ONE_THING, ids=lambda operation: operation.tool)
def test_a_stranger_gets_the_same_refusal_everywhere(world, operation):
    stranger = an_api_key(a_workspace("elsewhere"), "admin")
    given = next(iter(_questions(operation, world)))

    over_rest = Api(stranger).perform(operation, given)
    if operation in WRITES:
        given |= {name: json.dumps(given[name]) for name in ("messages", "overrides") if name in given}
        given |= {"content": "/dev/null"} if "content" in given else {}
    on_the_command_line = lcm("--api-key", stranger, "--json", *as_arguments(operation, given))

    assert (over_rest.status, over_rest.body["code"]) == (404, "not_found")
    assert on_the_command_line.exit_code == 3
    assert on_the_command_line.problem == over_rest.body


OF_A_CONVERSATION = [operation for operation in CATALOGUE if "conversation_id" in placeholders(operation.path)]


@pytest.mark.parametrize("operation", OF_A_CONVERSATION, ids=lambda operation: operation.tool)
def test_a_number_that_no_row_could_have_is_as_unknown_as_any_other(world, operation):
    given = next(iter(_questions(operation, world))) | {"conversation_id": 10**21}

    reply = Api(an_api_key(None, "admin")).perform(operation, given)

    assert (reply.status, reply.body["code"]) == (404, "not_found")


@pytest.mark.parametrize("operation", WRITES, ids=lambda operation: operation.tool)
def test_a_reader_may_not_write(world, operation):
    reader = Api(an_api_key(None, "read"))

    reply = reader.perform(operation, next(iter(_questions(operation, world))))

    assert (reply.status, reply.body["code"]) == (403, "forbidden")


REFUSALS = [
    ("lcm_expand", {"token_cap": -5}, 400, "invalid_params"),
    ("lcm_expand", {"token_cap": 0}, 400, "invalid_params"),
    ("lcm_expand", {"token_cap": 10**30}, 400, "invalid_params"),
    ("lcm_expand", {"depth": 0}, 400, "invalid"),
    ("lcm_expand", {"depth": -2}, 400, "invalid_params"),
    ("lcm_expand", {"cursor": "nonsense"}, 400, "bad_cursor"),
    ("lcm_expand", {"cursor": "e30:1xUN0v:p21rpvUeGLzkiP"}, 400, "bad_cursor"),
    ("lcm_expand", {"cursor": ""}, 400, "invalid_params"),
    ("lcm_expand", {"summary_id": "sum_0000000000000000"}, 404, "not_found"),
    ("lcm_describe", {"id": "sum_0000000000000000"}, 404, "not_found"),
    ("lcm_describe", {"id": "file_0000000000000000"}, 404, "not_found"),
    ("lcm_describe", {"id": f"msg_{10**30}"}, 404, "not_found"),
    ("lcm_describe", {"id": "msg_01"}, 404, "not_found"),
    ("lcm_describe", {"id": "conv_987654321"}, 404, "not_found"),
    ("lcm_describe", {"id": "run_0000000000000000"}, 404, "not_found"),
    ("lcm_describe_range", {"from_seq": 0}, 400, "invalid_params"),
    ("lcm_describe_range", {"from_seq": 42, "to_seq": 2}, 400, "invalid"),
    ("lcm_describe_range", {"conversation_id": 987654321}, 404, "not_found"),
    ("lcm_impact", {"id": "file_0000000000000000"}, 404, "not_found"),
    ("lcm_impact", {"limit": 0}, 400, "invalid_params"),
    ("lcm_expand_range", {"cursor": "nonsense"}, 400, "bad_cursor"),
    ("lcm_expand_range", {"depth": 0}, 400, "invalid"),
    ("lcm_expand_range", {"to_seq": 10**30}, 400, "invalid_params"),
    ("lcm_expand_query", {"ids": ["nothing"]}, 404, "not_found"),
    ("lcm_expand_query", {"ids": ["file_0000000000000000"]}, 400, "invalid"),
    ("lcm_expand_query", {"ids": ["sum_0"] * 51}, 400, "invalid_params"),
    ("lcm_expand_query", {"depth": 4}, 400, "invalid_params"),
    ("lcm_expand_query", {"token_cap": 1}, 400, "invalid_params"),
    ("lcm_expand_query", {"grant_id": "grant_0000000000000000"}, 404, "not_found"),
    ("lcm_expand_query", {"query": '"'}, 400, None),
    ("lcm_grant", {"grant_id": "grant_0000000000000000"}, 404, "not_found"),
    ("lcm_revoke_grant", {"grant_id": "grant_0000000000000000"}, 404, "not_found"),
    ("lcm_assemble", {"budget": 0}, 400, "invalid_params"),
    ("lcm_assemble", {"budget": -1}, 400, "invalid_params"),
    ("lcm_assemble", {"budget": 10**30}, 400, "invalid_params"),
    ("lcm_assemble", {"budget": "much"}, 400, "invalid_params"),
    ("lcm_assemble", {"reserve": -1}, 400, "invalid_params"),
    ("lcm_assemble", {"budget": 1000, "reserve": 1000}, 400, "invalid"),
    ("lcm_assemble", {"as_of": "43"}, 400, "invalid"),
    ("lcm_assemble", {"as_of": "yesterday"}, 400, "invalid"),
    ("lcm_assemble", {"as_of": "2026-01-31T12:00:00"}, 400, "invalid"),
    ("lcm_assemble", {"as_of": "run_0000000000000000"}, 404, "not_found"),
    ("lcm_recall", {"share": 0}, 400, "invalid"),
    ("lcm_recall", {"share": 1.5}, 400, "invalid_params"),
    ("lcm_recall", {"share": "nan"}, 400, None),
    ("lcm_recall", {"budget": 0}, 400, "invalid_params"),
    ("lcm_receipt", {"receipt_id": "rcp_0000000000000000"}, 404, "not_found"),
    ("lcm_compare_receipts", {"other": "rcp_0000000000000000"}, 404, "not_found"),
    ("lcm_grep", {"query": "("}, 400, None),
    ("lcm_grep", {"query": "a{2,1}"}, 400, None),
    ("lcm_grep", {"query": "(?<=x)y(?P<n>z)(?P=n)(?#c)[[:nope:]]"}, 400, None),
    ("lcm_grep", {"query": "x" * 200_000}, 400, "invalid_params"),
    ("lcm_grep", {"limit": 0}, 400, "invalid_params"),
    ("lcm_grep", {"limit": 10_000}, 400, None),
    ("lcm_grep", {"conversation_id": 987654321}, 404, "not_found"),
    ("lcm_read_file", {"offset": -1}, 400, "invalid_params"),
    ("lcm_messages", {"limit": 100_000}, 400, "invalid_params"),
    ("lcm_evaluate", {"conversation_id": 987654321}, 404, "not_found"),
    ("lcm_check", {"conversation_id": 987654321}, 404, "not_found"),
    ("lcm_scan", {"scan_id": 987654321}, 404, "not_found"),
    ("lcm_report", {"report_id": "report_0000000000000000"}, 404, "not_found"),
    ("lcm_plan_repairs", {"ledger_file_id": "file_0000000000000000"}, 404, "not_found"),
    ("lcm_repairs", {"repair_id": "repair_0000000000000000"}, 404, "not_found"),
    ("lcm_compact", {"conversation_id": 987654321}, 404, "not_found"),
    ("lcm_plan", {"conversation_id": 987654321}, 404, "not_found"),
    ("lcm_plans", {"limit": 0}, 400, "invalid_params"),
    ("lcm_show_plan", {"plan_id": "plan_0000000000000000"}, 404, "not_found"),
    ("lcm_execute_plan", {"plan_id": "plan_0000000000000000"}, 404, "not_found"),
    ("lcm_flush", {"host_reference": "NUL \x00"}, 400, "invalid_params"),
    ("lcm_flush", {"host_reference": "x" * 501}, 400, "invalid_params"),
    ("lcm_boundary", {"host_reference": "one that is new", "last_seq": 43}, 400, "invalid"),
    ("lcm_boundaries", {"conversation_id": 987654321}, 404, "not_found"),
    ("lcm_coverage", {"host_reference": "another"}, 404, "not_found"),
    ("lcm_coverage", {"idempotency_keys": ["k"] * 1001}, 400, "invalid_params"),
    ("lcm_coverage", {"idempotency_keys": [7]}, 400, "invalid_params"),
]


@pytest.mark.parametrize(("tool", "wrong", "status", "code"), REFUSALS, ids=lambda value: str(value)[:40])
def test_what_cannot_be_answered_is_refused_alike_everywhere(world, tool, wrong, status, code):
    operation = next(each for each in CATALOGUE if each.tool == tool)
    given = next(iter(_questions(operation, world))) | ({"mode": "regex"} if tool == "lcm_grep" else {}) | wrong

    reply = Api(an_api_key()).perform(operation, given)
    shown = lcm("--json", *as_arguments(operation, given))

    assert reply.status == status
    assert reply.body["code"] == code or code is None
    assert shown.problem == reply.body
    assert shown.exit_code == (3 if status == 404 else 2)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(x+x+)+y", r"(.*)*(.*)*(.*)*=", r"(([a-z])+.)+[A-Z]([a-z])+$"])
def test_a_pattern_made_to_take_for_ever_ends_in_time(world, settings, pattern):
    settings.LCM = {**settings.LCM, "search_timeout_ms": 1000}
    a_conversation("a" * 50_000 + "!", session_id="trap")

    reply = Api(an_api_key()).get("matches/", query=pattern, mode="regex")

    assert reply.status in (200, 400, 503)
    assert reply.status == 200 or reply.body["code"] not in ("internal", "unavailable")


def test_a_search_is_of_one_conversation_or_of_all(world):
    a_conversation("another harbour", session_id="other")

    everywhere = lcm("--json", "grep", "harbour", "--sort", "recency").json["matches"]
    in_one = lcm("--json", "grep", "other", "--mode", "full_text", "harbour").json["matches"]

    assert {match["conversation_id"] for match in in_one} == {in_one[0]["conversation_id"]}
    assert len({match["conversation_id"] for match in everywhere}) == 2


def test_an_expansion_goes_on_where_its_page_stopped_on_the_command_line_too(world):
    pages = []
    arguments = ["expand", world["summary_id"], "--include-messages", "--token-cap", "400"]
    page = lcm("--json", *arguments).json
    while page["cursor"]:
        pages += page["items"]
        page = lcm("--json", *arguments, f"--cursor={page['cursor']}").json
    pages += page["items"]

    seqs = [item["first_seq"] for item in pages if item["complete"]]
    assert seqs == sorted(set(seqs))
    assert len(pages) > 2


def test_a_range_goes_on_where_its_page_stopped_on_the_command_line_too(world):
    arguments = ["expand-range", "harbour", "2", "41", "--only-messages", "--token-cap", "400"]
    pages = []
    page = lcm("--json", *arguments).json
    while page["cursor"]:
        pages += page["items"]
        page = lcm("--json", *arguments, f"--cursor={page['cursor']}").json
    pages += page["items"]

    assert [item["first_seq"] for item in pages if item["complete"]] == list(range(2, 42))


def test_a_grant_that_was_taken_back_is_refused_alike_everywhere_and_listed(world):
    api = Api(an_api_key())
    asked = {"question": "And what else?", "grant_id": world["grant_id"]}
    again = ["expand-query", "And what else?", "--grant-id", world["grant_id"]]

    further = api.post("expand-queries/", {**asked, "query": "boats"})
    revoked = lcm("revoke-grant", world["grant_id"])
    reply = api.post("expand-queries/", asked)
    shown = lcm("--json", *again)
    listed = api.get("grants/").body["items"]

    assert (further.status, further.body["code"]) == (403, "grant_recursion")
    assert "revoked" in revoked.out
    assert (reply.status, reply.body["code"], reply.body["retryable"]) == (403, "grant_revoked", False)
    assert (shown.exit_code, shown.problem) == (5, reply.body)
    assert [(each["state"], each["refusals"]) for each in listed] == [
        ("revoked", {"grant_recursion": 1, "grant_revoked": 2})
    ]


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


def test_settings_that_cannot_work_together_are_refused_alike_everywhere(world):
    path = f"conversations/{world['conversation_id']}/overrides/"

    reply = Api(an_api_key()).ask("PUT", path, {"overrides": {"fresh_tail_count": 300}})
    shown = lcm("--json", "configure", "harbour", '{"fresh_tail_count": 300}')

    assert (reply.status, reply.body["code"]) == (400, "cannot_be_satisfied")
    assert "300 is more than max_active_messages 200" in reply.body["detail"]
    assert shown.problem == reply.body


def test_a_flush_may_be_left_to_a_worker(world):
    path = f"conversations/{world['conversation_id']}/flushes/"

    reply = Api(an_api_key()).post(path, {"host_reference": "second", "background": True})
    shown = lcm("flush", "harbour", "third", "--background")

    assert reply.status == 202
    assert (reply.body["boundary"]["last_seq"], reply.body["job"]["state"]) == (42, "queued")
    assert "third" in shown.out
    assert "queued" in shown.out


def test_a_boundary_said_to_be_another_is_refused_alike_everywhere(world):
    path = f"conversations/{world['conversation_id']}/boundaries/"

    reply = Api(an_api_key()).post(path, {"host_reference": world["host_reference"], "last_seq": 3})
    shown = lcm("--json", "boundary", "harbour", world["host_reference"], "--last-seq", "3")

    assert (reply.status, reply.body["code"], reply.body["retryable"]) == (409, "conflict", False)
    assert shown.problem == reply.body


def test_what_is_not_covered_shows_in_the_exit_status(world):
    covered = lcm("coverage", "harbour")
    keys = json.dumps(["call 1", "call \u2028 2"])

    lacking = lcm("coverage", "harbour", "--idempotency-keys", keys)

    assert (covered.exit_code, lacking.exit_code) == (0, 1)
    assert "Everything can be had." in covered.out
    assert "no message has the key call" in lacking.out


def taken_by(method: Callable[..., Any]) -> set[str]:
    """The names of what a method takes, those in a dictionary of named things, such as grep's, included."""
    takes = set(inspect.signature(method).parameters) - {"self"}
    for annotation in get_type_hints(method).values():
        if get_origin(annotation) is Unpack:
            takes |= get_args(annotation)[0].__annotations__.keys()
    return takes


def test_the_catalogue_is_of_one_piece():
    assert len({operation.tool for operation in CATALOGUE}) == len(CATALOGUE)
    assert len({(operation.verb, path) for operation in CATALOGUE for path in operation.paths}) == sum(
        len(operation.paths) for operation in CATALOGUE
    )
    for operation in CATALOGUE:
        takes = taken_by(getattr(operation.service, operation.method))
        says = operation.params.prototype().fields.keys()
        # What only tells the adapter how to read or when to do it does not reach the service.
        assert says - {"format", "background"} <= takes, operation.tool
        assert set(placeholders(operation.path)) <= says, operation.tool
        assert operation.description, operation.tool


# -- the OpenAPI document ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def document():
    from django.test import Client

    return Client().get("/api/v1/schema/").json()


@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.tool)
def test_every_operation_is_in_the_document_with_its_refusals(document, operation):
    for path in operation.paths:
        told = document["paths"][f"/api/v1/{path}"][operation.verb.lower()]

        assert told["summary"]
        assert told["security"] == [{"ApiKey": []}]
        assert told["responses"].keys() >= {str(operation.status), "400", "401", "403", "404", "503"}
        for status, response in told["responses"].items():
            assert response["description"]
            # What is too long the web server refuses, without a body.
            if int(status) >= 400 and status != "414":
                assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Problem"}
        in_path = {each["name"] for each in told["parameters"] if each["in"] == "path"} if placeholders(path) else set()
        assert in_path == set(placeholders(path))


@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.tool)
def test_every_operation_and_param_is_told_with_an_example_that_fits(document, operation):
    for path in operation.paths:
        told = document["paths"][f"/api/v1/{path}"][operation.verb.lower()]

        for parameter in told.get("parameters", ()):
            assert parameter["description"], parameter["name"]
            _validate(parameter["example"], parameter["schema"], document)
        if operation.has_body:
            content = told["requestBody"]["content"]["application/json"]
            _validate(content["example"], content["schema"], document)
            for shape in content["schema"].get("oneOf", [content["schema"]]):
                assert all(field["description"] for field in shape["properties"].values())


def test_links_lead_from_an_id_to_what_is_asked_with_it(document):
    link = document["paths"]["/api/v1/conversations/{conversation_id}/plans/"]["post"]["responses"]["201"]["links"]

    assert link["execute_plan"]["parameters"] == {"path.plan_id": "$response.body#/plan_id"}
    assert link["show_plan"]["operationId"] == "show_plan"


def test_every_reference_in_the_document_leads_somewhere(document):
    names = document["components"]["schemas"].keys()
    text = json.dumps(document)

    referred = {piece.split('"')[0] for piece in text.split("#/components/schemas/")[1:]}

    assert referred <= names
    assert {"Problem", "NewMessage", "MessageRecord"} <= referred


@pytest.mark.parametrize("operation", CATALOGUE, ids=lambda operation: operation.tool)
def test_answers_and_requests_are_as_the_document_says(world, document, operation):
    told = document["paths"][f"/api/v1/{operation.path}"][operation.verb.lower()]

    for given in _questions(operation, world):
        if placeholders(operation.path) and not all(name in given for name in placeholders(operation.path)):
            continue
        reply = Api(an_api_key(None, operation.scope, "write")).perform(operation, given)

        assert reply.status == operation.status
        answer = told["responses"][str(operation.status)]["content"]["application/json"]["schema"]
        _validate(reply.body, answer, document)
        if operation.has_body:
            body = {name: value for name, value in given.items() if name not in placeholders(operation.path)}
            _validate(body, told["requestBody"]["content"]["application/json"]["schema"], document)


def test_a_refusal_is_as_the_document_says(document, db):
    reply = Api(an_api_key()).get("conversations/", limit=0)

    _validate(reply.body, {"$ref": "#/components/schemas/Problem"}, document)


def _validate(value, schema, document):
    jsonschema.Draft202012Validator({**schema, "components": document["components"]}).validate(value)


def test_the_document_has_a_page_that_asks_nobody_else(client):
    page = client.get("/api/v1/docs/")

    assert page.status_code == 200
    assets = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.content.decode())
    assert len(assets) >= 3
    assert {client.get(asset).status_code for asset in assets} == {200}
    assert b"//cdn" not in page.content
    assert b"https://" not in page.content


def test_every_refusal_that_a_service_may_raise_has_its_line():
    def all_below(error):
        for each in error.__subclasses__():
            yield each
            yield from all_below(each)

    # Some say by themselves what they refuse.
    made = {
        ColdBlockDamaged: ColdBlockDamaged(1, "It is short."),
        TooManyRequests: TooManyRequests(Allowance(limit=1, burst=1, remaining=0, reset=1, retry_after=1)),
    }
    for error in all_below(LcmError):
        problem = problem_of(made.get(error) or error("no"))

        assert problem.code == error.code
        assert 400 <= problem.status < 600
        assert problem.retryable is error.retryable
