"""A run of a language model: order, completeness, repeated attempts, pauses and ends."""

from __future__ import annotations

import json
import time
from datetime import timedelta

import pytest
from django.db import DataError, OperationalError, connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from conversations.errors import Conflict
from conversations.files.large_files import LargeFileService
from conversations.models import Message
from retrieval.map import map_worker
from retrieval.map.item_queue import ItemLease, claim_next
from retrieval.map.map_worker import MapWorker
from retrieval.map.models import MapEvent, MapItem
from retrieval.map.types import MapKind
from tests.compaction.vendor import failing, rate_limited, refusing
from tests.conversations.appending import at_once
from tests.factories import a_conversation
from tests.maps import lines_of
from tests.retrieval.map.labels import Unreliable, a_run, an_item, answering, expected, item_in, labelling, last_message


def test_outputs_come_in_the_order_of_the_input_and_the_conversation_gets_ids_and_counts(operator, work, vendor):
    run = a_run(operator, 12)

    work()

    run = operator.get_run(run_id=run.run_id)
    assert (run.state, run.done, run.failed, run.queued, run.leased) == ("completed", 12, 0, 0, 0)
    assert lines_of(run.output_file_id) == [expected(number) for number in range(12)]
    assert run.failures_file_id is None
    message = last_message(run.conversation_id)
    assert run.run_id in message and run.output_file_id in message and "12 of 12 items done" in message
    assert "label" not in message
    assert len(vendor.requests) == 12
    assert run.spent_in > 0 and run.spent_out > 0


def test_the_model_gets_the_temperature_of_the_run(operator, work, vendor):
    a_run(operator, 1, temperature=0.3)
    a_run(operator, 1)

    work()

    assert {asked.body.get("temperature") for asked in vendor.requests} == {0.3, None}


def test_errors_are_fed_back_with_the_answer_that_was_refused(operator, work, vendor):
    vendor.behaves(answering('{"id": 0, "label": "anger"}'), answering("no idea"), labelling)
    run = a_run(operator, 1)

    work()

    second, third = vendor.requests[1].user, vendor.requests[2].user
    assert '"label": "anger"' in second and "$.label: 'anger' is not one of" in second
    assert "no idea" in third and "not one JSON value" in third and "anger" not in third
    keys = [asked.headers["idempotency-key"] for asked in vendor.requests]
    assert keys == [f"{run.run_id}:1:{attempt}" for attempt in (1, 2, 3)]
    assert operator.get_run(run_id=run.run_id).state == "completed"


def test_an_item_that_is_never_right_fails_apart_from_the_others(operator, work, vendor):
    def wrong_for_two(asked):
        (answering('{"id": 2}') if item_in(asked)["id"] == 2 else labelling)(asked)

    vendor.behaves(wrong_for_two)
    run = a_run(operator, 5, max_attempts=3)

    work()

    run = operator.get_run(run_id=run.run_id)
    assert (run.state, run.done, run.failed) == ("completed", 4, 1)
    assert [line["id"] for line in lines_of(run.output_file_id)] == [0, 1, 3, 4]
    [failure] = lines_of(run.failures_file_id)
    assert failure == {"position": 3, "error": "validation: $: 'label' is a required property"}
    assert sum(item_in(asked)["id"] == 2 for asked in vendor.requests) == 3


def test_failed_items_are_tried_again_on_request_and_the_files_written_anew(operator, work, vendor):
    vendor.behaves(answering("null"))
    run = a_run(operator, 3, max_attempts=1)
    work()
    before = operator.get_run(run_id=run.run_id)
    assert (before.state, before.failed, before.output_file_id) == ("failed", 3, None)
    vendor.behaves(labelling)

    operator.retry_failed(run_id=run.run_id)
    work()

    after = operator.get_run(run_id=run.run_id)
    assert (after.state, after.done, after.failed, after.failures_file_id) == ("completed", 3, 0, None)
    assert lines_of(after.output_file_id) == [expected(number) for number in range(3)]
    assert Message.objects.filter(conversation_id=run.conversation_id, author="lcm").count() == 2
    with pytest.raises(Conflict):
        operator.retry_failed(run_id=run.run_id)


@pytest.mark.parametrize("fault", [failing(503), rate_limited()])
def test_faults_of_the_vendor_use_no_attempts(operator, work, vendor, fault):
    vendor.behaves(fault, fault, labelling)
    run = a_run(operator, 1, max_attempts=1)

    for _ in range(3):
        work()
        MapItem.objects.filter(state="leased").update(leased_until="2020-01-01T00:00Z", run_after="2020-01-01T00:00Z")

    assert operator.get_run(run_id=run.run_id).state == "completed"
    assert len(vendor.requests) == 3


def test_one_call_in_four_fails_and_every_item_is_completed_once(operator, work, vendor):
    unreliable = Unreliable()
    vendor.behaves(unreliable)
    run = a_run(operator, 16, max_attempts=10)

    while operator.get_run(run_id=run.run_id).state != "completed":
        work(breaker_failures=100)
        MapItem.objects.filter(state="leased").update(leased_until="2020-01-01T00:00Z", run_after="2020-01-01T00:00Z")

    completed = MapEvent.objects.filter(run_id=run.run_id, event="completed").values_list("position", flat=True)
    assert sorted(completed) == list(range(1, 17))
    assert lines_of(operator.get_run(run_id=run.run_id).output_file_id) == [expected(n) for n in range(16)]
    assert sum(unreliable.calls.values()) > 16


def test_an_open_breaker_pauses_the_run_and_the_sweep_resumes_it(operator, work, policy, vendor):
    vendor.behaves(failing(500))
    run = a_run(operator, 8, concurrency=8)
    work(breaker_failures=2, breaker_pause_seconds=1)
    paused = operator.get_run(run_id=run.run_id)
    assert (paused.state, paused.pause_reason) == ("paused", "breaker")
    assert paused.failed == 0
    vendor.behaves(labelling)

    time.sleep(1)
    policy()
    MapWorker.from_settings().sweep()
    work(map_calls=1)

    assert operator.get_run(run_id=run.run_id).done == 8


@pytest.mark.parametrize(("kind", "hours"), [("llm", 2), ("agentic", 25)])
def test_after_the_clock_was_set_back_items_are_due_soon(operator, work, policy, kind, hours):
    run = a_run(operator, 2, kind=MapKind(kind), retain="the rest")
    soon, later = (timezone.now() + timedelta(hours=hours) for hours in (hours, 100))
    MapItem.objects.update(state="leased", run_after=later, leased_until=later)

    MapWorker.from_settings().sweep()

    for item in MapItem.objects.filter(run_id=run.run_id):
        assert max(item.run_after, item.leased_until) < soon


def test_a_wrong_key_costs_no_item(operator, work, vendor):
    vendor.behaves(refusing(401))
    run = a_run(operator, 3)

    work(breaker_failures=1)

    run = operator.get_run(run_id=run.run_id)
    assert (run.failed, run.done) == (0, 0)


def test_the_limit_of_the_site_pauses_the_run_until_its_window_is_over(operator, work, policy):
    run = a_run(operator, 6)
    work(spend_max_calls=2, map_calls=1)
    paused = operator.get_run(run_id=run.run_id)
    assert (paused.state, paused.pause_reason, paused.done) == ("paused", "spend", 2)

    policy(spend_max_calls=2)
    MapWorker.from_settings().sweep()
    assert operator.get_run(run_id=run.run_id).state == "paused"
    policy()
    MapWorker.from_settings().sweep()
    work()

    assert operator.get_run(run_id=run.run_id).done == 6


def test_a_spent_budget_pauses_the_run_until_it_is_raised(operator, work):
    run = a_run(operator, 6, budget_tokens=1)
    work(map_calls=1)
    paused = operator.get_run(run_id=run.run_id)
    assert (paused.state, paused.pause_reason, paused.done, paused.failed) == ("paused", "budget", 1, 0)

    with pytest.raises(Conflict) as refused:
        operator.resume(run_id=run.run_id)
    assert refused.value.code == "budget_spent"
    a_run(operator, 6, budget_tokens=paused.spent_in + paused.spent_out)
    work(map_calls=1)
    operator.resume(run_id=run.run_id, budget_tokens=1_000_000)
    work()

    assert [(each.state, each.done) for each in operator.list_runs()] == [("paused", 1), ("completed", 6)]


def test_a_paused_run_is_left_alone_until_a_person_resumes_it(operator, work, policy, vendor):
    run = a_run(operator, 4)
    operator.pause(run_id=run.run_id)

    work()
    policy()
    MapWorker.from_settings().sweep()
    assert operator.get_run(run_id=run.run_id).pause_reason == "person"
    assert vendor.requests == []

    operator.resume(run_id=run.run_id)
    work()
    assert operator.get_run(run_id=run.run_id).state == "completed"


def test_a_cancelled_run_refuses_late_answers_and_stays_cancelled(operator, work):
    run = a_run(operator, 4)
    lease = claim_next(worker="late", lease_seconds=30)

    operator.cancel(run_id=run.run_id)
    work()

    with pytest.raises(Conflict) as refused:
        lease.complete('{"id":0,"label":"bug"}', actor="late")
    assert refused.value.code == "lease_lost"
    run = operator.get_run(run_id=run.run_id)
    assert (run.state, run.done, run.output_file_id) == ("cancelled", 0, None)
    for steered in (operator.pause, operator.resume, operator.retry_failed):
        with pytest.raises(Conflict):
            steered(run_id=run.run_id)


def test_a_late_worker_is_refused_by_its_fence(operator, committed_db):
    run = a_run(operator, 1)
    late = claim_next(worker="late", lease_seconds=0)
    other = claim_next(worker="other", lease_seconds=30)

    other.complete('{"id":0,"label":"bug"}', actor="other")
    with pytest.raises(Conflict) as refused:
        late.complete('{"id":0,"label":"praise"}', actor="late")

    assert refused.value.code == "lease_lost"
    assert [item.output for item in operator.list_items(run_id=run.run_id)] == ['{"id":0,"label":"bug"}']
    assert MapEvent.objects.filter(run_id=run.run_id, event="completed").count() == 1


def test_runs_are_served_in_turn_and_none_beyond_its_concurrency(operator, db):
    first, second = a_run(operator, 5, concurrency=3), a_run(operator, 5, concurrency=2)

    claimed = []
    while (lease := claim_next(worker="one", lease_seconds=30)) is not None:
        claimed.append(lease.row.run_id)

    assert claimed == [first.run_id, second.run_id, first.run_id, second.run_id, first.run_id]


def test_an_item_whose_workers_always_die_is_set_aside(operator, work):
    run = a_run(operator, 2)
    for _ in range(8):
        claim_next(worker="dies", lease_seconds=0)
        MapItem.objects.filter(position=2).update(run_after="2030-01-01T00:00Z")
    MapItem.objects.filter(position=2).update(run_after="2020-01-01T00:00Z")

    work()

    [failed] = operator.list_items(run_id=run.run_id, state="failed")
    assert (failed.position, failed.error_kind, failed.last_error) == (1, "lease_lost", "worker_lost")
    assert operator.get_run(run_id=run.run_id).state == "completed"


def test_a_file_is_an_input_and_lines_keep_their_places(operator, work):
    conversation_id = a_run(operator, 1).conversation_id
    text = "\n\n".join(json.dumps(an_item(number)) for number in range(3)) + "\n"
    files = LargeFileService.from_settings()
    file = files.store(conversation_id=conversation_id, content=text.encode(), file_name="in.jsonl")

    run = a_run(operator, 0, items=None, conversation_id=conversation_id, input_file_id=file.file_id)
    work()

    run = operator.get_run(run_id=run.run_id)
    assert lines_of(run.output_file_id) == [expected(number) for number in range(3)]
    assert run.input_file_id == file.file_id
    page = operator.output(run_id=run.run_id, limit=2)
    assert [item.position for item in page.items] == [1, 2] and page.next_position == 2


def raising(failure):
    def fail(_):
        raise failure("at the first answer")

    return fail


def only_reading(cursor):
    cursor.execute("SET TRANSACTION READ ONLY")


def timing_out(cursor):
    cursor.execute("SET LOCAL statement_timeout = 20")
    cursor.execute("SELECT pg_sleep(1)")


@pytest.mark.parametrize(
    ("fault", "state", "done"),
    [
        (raising(OperationalError), "completed", 8),
        (raising(DataError), "running", 7),
        (only_reading, "completed", 8),
        (timing_out, "running", 7),
        (raising(RuntimeError), "running", 7),
    ],
    ids=["outage", "error", "read-only", "timeout", "other"],
)
def test_an_error_loses_no_answer_of_other_calls(operator, work, vendor, monkeypatch, fault, state, done):
    run = a_run(operator, 8)
    complete, faults = ItemLease.complete, [fault]

    def failing_once(lease, output, **values):
        with transaction.atomic(), connection.cursor() as cursor:
            if faults:
                faults.pop()(cursor)
            complete(lease, output, **values)

    monkeypatch.setattr(ItemLease, "complete", failing_once)
    work(map_lease_seconds=60.0)

    run = operator.get_run(run_id=run.run_id)
    assert (run.state, run.done, len(vendor.requests)) == (state, done, 8)


def test_a_call_whose_item_another_worker_has_taken_over_counts_only_its_tokens(operator, work, vendor):
    def overtaken(asked):
        # At one moment, as this worker would claim it, too.
        with transaction.atomic():
            MapItem.objects.update(leased_until="2020-01-01T00:00Z", run_after="2020-01-01T00:00Z")
            claim_next(worker="other", lease_seconds=30)
        connection.close()
        labelling(asked)

    vendor.behaves(overtaken)
    a_run(operator, 1)
    work()

    [run] = operator.list_runs()
    [item] = operator.list_items(run_id=run.run_id)
    assert (run.done, run.leased, run.spent_in > 0) == (0, 1, True)
    assert (item.tokens_in, item.tokens_out) == (run.spent_in, run.spent_out)


def test_leases_are_kept_while_the_output_of_another_run_is_written(operator, work, vendor, monkeypatch):
    held = []
    writing = iter([4.0])

    def slow(asked):
        time.sleep(3.6)
        held.append(MapItem.objects.filter(state="leased", leased_until__gt=Now()).count())
        connection.close()
        labelling(asked)

    vendor.behaves(labelling, slow)
    for _ in range(2):
        a_run(operator, 1, timeout_s=10)
    monkeypatch.setattr(map_worker, "_SECONDS_BETWEEN_ENDS", 0.0)
    monkeypatch.setattr(map_worker, "try_to_finish", lambda run_id, actor: time.sleep(next(writing, 0.0)))

    work(map_lease_seconds=3.0)

    assert held == [1]


def test_equal_requests_at_once_become_one_run(operator, committed_db):
    conversation_id = a_conversation("hello").conversation_id
    given = {"conversation_id": conversation_id, "idempotency_key": "k"}

    found = at_once(lambda _: a_run(operator, 20, **given).run_id, workers=4)

    assert len(set(found)) == 1
    assert MapItem.objects.count() == 20
