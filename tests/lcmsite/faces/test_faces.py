"""One catalogue, many faces: each answers alike, and goes on with what was begun through another."""

import inspect
import json
from collections.abc import Callable
from typing import Any, Unpack, get_args, get_origin, get_type_hints

import pytest

from conversations.models import Conversation
from conversations.scope import Scope
from lcmsite.catalogue.json_text import as_ascii_json
from lcmsite.catalogue.operation import placeholders
from lcmsite.catalogue.operations import CATALOGUE
from lcmsite.catalogue.problems import FINDINGS_EXIT_CODE
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.callers import Api, an_api_key, as_arguments, lasting, lcm
from tests.lcmsite.faces.questions import READS, questions


def _of_service(operation, given):
    service = operation.service.from_settings(Scope(a_workspace().pk))
    return json.loads(as_ascii_json(getattr(service, operation.method)(**operation.params.accepted(given))))


FLEETING = ("started_at", "finished_at", "grant", "milliseconds", "report_id", "next_cursor")


def _exit_code_of(answer):
    """An answer that says of itself that something is damaged has a status of its own."""
    return FINDINGS_EXIT_CODE if isinstance(answer, dict) and answer.get("is_clean") is False else 0


@pytest.mark.sampled(14)
@pytest.mark.parametrize("operation", READS, ids=lambda operation: operation.tool)
def test_service_rest_and_command_line_give_one_answer_that_a_terminal_can_show(world, operation):
    api = Api(an_api_key(None, operation.scope))

    for given in questions(operation, world):
        expected = lasting(_of_service(operation, given), FLEETING)
        reply = api.perform(operation, given)
        told, shown = lcm("--json", *as_arguments(operation, given)), lcm(*as_arguments(operation, given))

        if operation.operator_only:
            assert reply.status == 403
        else:
            assert reply.status == operation.status
            assert lasting(reply.body, FLEETING) == expected
        assert told.exit_code == shown.exit_code == _exit_code_of(expected), told.err + shown.err
        assert lasting(told.json, FLEETING) == expected
        assert shown.out.strip() and "\x00" not in shown.out


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
        says = operation.params.model_fields.keys()
        # What only tells the adapter how to read or when to do it does not reach the service.
        assert says - {"format", "background"} - ({"cursor"} if operation.paging else set()) <= takes, operation.tool
        assert set(placeholders(operation.path)) <= says, operation.tool
        assert operation.description, operation.tool


def test_a_search_is_of_one_conversation_or_of_all(world):
    a_conversation("another harbour", session_id="other")

    everywhere = lcm("--json", "grep", "harbour", "--sort", "recency").json["items"]
    in_one = lcm("--json", "grep", "other", "--mode", "full_text", "harbour").json["items"]

    assert {match["conversation_id"] for match in in_one} == {in_one[0]["conversation_id"]}
    assert len({match["conversation_id"] for match in everywhere}) == 2


@pytest.mark.parametrize("of_a_range", [False, True], ids=["a summary", "a range"])
def test_an_expansion_goes_on_where_its_page_stopped_on_the_command_line_too(world, of_a_range):
    of_a_summary = ["expand", world["summary_id"], "--include-messages"]
    whole = ["expand-range", "harbour", "2", "41", "--only-messages"] if of_a_range else of_a_summary
    arguments = ["--json", *whole, "--token-cap", "2000"]
    pages = [lcm(*arguments).json]
    while cursor := pages[-1].get("next_cursor"):
        pages.append(lcm(*arguments, f"--cursor={cursor}").json)

    seqs = [item["first_seq"] for page in pages for item in page["items"] if item["complete"]]
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


def test_a_compaction_and_a_flush_may_be_left_to_a_worker(world):
    api, path = Api(an_api_key()), f"conversations/{world['conversation_id']}"

    reply = api.post(f"{path}/compactions/", {"background": True})
    shown = lcm("--json", "compact", "harbour", "--background")
    flushed = api.post(f"{path}/flushes/", {"host_reference": "second", "background": True})
    also = lcm("flush", "harbour", "third", "--background")

    assert (reply.status, reply.body["state"]) == (202, "queued")
    assert shown.json["job_id"] == reply.body["job_id"]
    assert flushed.status == 202
    assert (flushed.body["boundary"]["last_seq"], flushed.body["job"]["state"]) == (42, "queued")
    assert "third" in also.out and "queued" in also.out


def test_a_plan_is_told_carried_out_once_and_then_refused_alike_everywhere(world):
    a_conversation(*(f"We set port {5000 + n} for service-{n}. " * 90 for n in range(20)), session_id="ports")

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


def test_what_is_not_covered_shows_in_the_exit_status(world):
    covered = lcm("coverage", "harbour")
    keys = json.dumps(["call 1", "call \u2028 2"])

    lacking = lcm("coverage", "harbour", "--idempotency-keys", keys)

    assert (covered.exit_code, lacking.exit_code) == (0, 1)
    assert "Everything can be recovered." in covered.out
    assert "no message has the key call" in lacking.out
