"""What cannot be answered is refused alike through every face: to strangers, and for wrong params."""

import json
import re

import pytest

from lcmsite.catalogue.operation import placeholders
from lcmsite.catalogue.operations import CATALOGUE
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.callers import Api, an_api_key, as_arguments, lcm
from tests.lcmsite.faces.questions import questions

ABOUT_ONE_THING = [operation for operation in CATALOGUE if placeholders(operation.path) and not operation.operator_only]


@pytest.mark.sampled(14)
@pytest.mark.parametrize("operation", ABOUT_ONE_THING, ids=lambda operation: operation.tool)
def test_what_is_anothers_and_what_no_row_could_be_is_as_unknown_as_anything_else(world, operation):
    stranger = an_api_key(a_workspace("elsewhere"), "admin")
    given = next(iter(questions(operation, world)))

    over_rest = Api(stranger).perform(operation, given)
    on_the_command_line = lcm("--api-key", stranger, "--json", *as_arguments(operation, said(given)))

    assert (over_rest.status, over_rest.body["code"]) == (404, "not_found")
    assert on_the_command_line.exit_code == 3
    assert on_the_command_line.problem == over_rest.body
    if "conversation_id" in placeholders(operation.path):
        none = Api(an_api_key(None, "admin")).perform(operation, given | {"conversation_id": 10**21})
        assert none.status == 404
        assert without_numbers(none.body) == without_numbers(over_rest.body)


def without_numbers(problem):
    return re.sub(r"\d+", "", json.dumps(problem))


def said(given):
    """As it is said on a command line: JSON as text, bytes as the path of a file."""
    texts = {name: json.dumps(given[name]) for name in ("messages", "overrides", "entries") if name in given}
    return given | texts | ({"content": "/dev/null"} if "content" in given else {})


REFUSALS = [
    ("lcm_expand", {"token_cap": -5}, 400, "invalid_params"),
    ("lcm_expand", {"token_cap": 10**30}, 400, "invalid_params"),
    ("lcm_expand", {"cursor": "nonsense"}, 400, "bad_cursor"),
    ("lcm_expand", {"cursor": "e30:1xUN0v:p21rpvUeGLzkiP"}, 400, "bad_cursor"),
    ("lcm_describe", {"id": "sum_0000000000000000"}, 404, "not_found"),
    ("lcm_describe", {"id": f"msg_{10**30}"}, 404, "not_found"),
    ("lcm_describe", {"id": "conv_987654321"}, 404, "not_found"),
    ("lcm_describe_range", {"from_seq": 42, "to_seq": 2}, 400, "invalid"),
    ("lcm_expand_range", {"cursor": "nonsense"}, 400, "bad_cursor"),
    ("lcm_expand_query", {"ids": ["nothing"]}, 404, "not_found"),
    ("lcm_expand_query", {"ids": ["file_0000000000000000"]}, 400, "invalid"),
    ("lcm_expand_query", {"ids": ["sum_0"] * 51}, 400, "invalid_params"),
    ("lcm_expand_query", {"query": '"'}, 400, None),
    ("lcm_assemble", {"budget": "much"}, 400, "invalid_params"),
    ("lcm_assemble", {"budget": 1000, "reserve": 1000}, 400, "invalid"),
    ("lcm_assemble", {"as_of": "43"}, 400, "invalid"),
    ("lcm_assemble", {"as_of": "yesterday"}, 400, "invalid"),
    ("lcm_assemble", {"as_of": "2026-01-31T12:00:00"}, 400, "invalid"),
    ("lcm_assemble", {"as_of": "run_0000000000000000"}, 404, "not_found"),
    ("lcm_recall", {"share": "nan"}, 400, None),
    ("lcm_compare_receipts", {"other": "rcp_0000000000000000"}, 404, "not_found"),
    ("lcm_grep", {"query": "("}, 400, None),
    ("lcm_grep", {"query": "a{2,1}"}, 400, None),
    ("lcm_grep", {"query": "(?<=x)y(?P<n>z)(?P=n)(?#c)[[:nope:]]"}, 400, None),
    ("lcm_grep", {"query": "x" * 200_000}, 400, "invalid_params"),
    ("lcm_read_file", {"offset": -1}, 400, "invalid_params"),
    ("lcm_messages", {"limit": 100_000}, 400, "invalid_params"),
    ("lcm_check", {"conversation_id": 987654321}, 404, "not_found"),
    ("lcm_plan_repairs", {"ledger_file_id": "file_0000000000000000"}, 404, "not_found"),
    ("lcm_flush", {"host_reference": "NUL \x00"}, 400, "invalid_params"),
    ("lcm_flush", {"host_reference": "x" * 501}, 400, "invalid_params"),
    ("lcm_boundary", {"host_reference": "one that is new", "last_seq": 43}, 400, "invalid"),
    ("lcm_coverage", {"host_reference": "another"}, 404, "not_found"),
    ("lcm_coverage", {"idempotency_keys": ["k"] * 1001}, 400, "invalid_params"),
    ("lcm_coverage", {"idempotency_keys": [7]}, 400, "invalid_params"),
    ("lcm_boundary", {"last_seq": 3}, 409, "conflict"),
    ("lcm_configure", {"overrides": {"fresh_tail_count": 300}}, 400, "cannot_be_satisfied"),
]
EXIT_CODES = {400: 2, 404: 3, 409: 4}


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("tool", "wrong", "status", "code"), REFUSALS, ids=lambda value: str(value)[:40])
def test_what_cannot_be_answered_is_refused_alike_everywhere(world, tool, wrong, status, code):
    operation = next(each for each in CATALOGUE if each.tool == tool)
    given = next(iter(questions(operation, world))) | ({"mode": "regex"} if tool == "lcm_grep" else {}) | wrong

    reply = Api(an_api_key()).perform(operation, given)
    shown = lcm("--json", *as_arguments(operation, said(given)))

    assert reply.status == status
    assert reply.body["code"] == code or code is None
    assert shown.problem == reply.body
    assert shown.exit_code == EXIT_CODES[status]


@pytest.mark.parametrize("pattern", ["(a+)+$", r"(.*)*(.*)*(.*)*="])
def test_a_pattern_made_to_take_for_ever_ends_in_time(db, settings, pattern):
    settings.LCM = {**settings.LCM, "search_timeout_ms": 200}
    a_conversation("a" * 50_000 + "!", session_id="trap")

    reply = Api(an_api_key()).get("matches/", query=pattern, mode="regex")

    assert reply.status in (200, 400, 503)
    assert reply.status == 200 or reply.body["code"] not in ("internal", "unavailable")


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
