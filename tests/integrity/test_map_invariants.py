"""Whatever is changed past the triggers in the rows of map runs is found by a check."""

from __future__ import annotations

import re

import pytest
from django.db import DatabaseError, connection, transaction

from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from retrieval.delegation.grants import Grants
from retrieval.map.models import MapItem, MapRun
from tests.factories import a_workspace
from tests.integrity.breaking import breaking, checked, forging, found, without
from tests.maps import a_map_run, completed

pytestmark = pytest.mark.django_db

_TABLE = re.compile(r"map_\w+")

CHAIN = "map_events_are_chained"
HASHES = "map_items_match_their_hashes"
ONCE = "map_completions_are_recorded_once"
COUNTS = "map_counts_add_up"
SUBMITTED = "map_runs_are_as_submitted"
SCHEMAS = "map_schemas_match_their_hashes"
STATES = "map_states_follow_their_record"
SEALS = "site_rows_match_their_seals"

BREAKS = {
    "an event by somebody else": (("UPDATE map_events SET actor = 'x' WHERE seq = 2",), {CHAIN: [2]}),
    "an event of another kind": (
        ("UPDATE map_events SET event = 'paused' WHERE seq = 5",),
        {CHAIN: [5], STATES: [None]},
    ),
    "a hash": (("UPDATE map_events SET hash = sha256('x') WHERE seq = 3",), {CHAIN: [3, 4]}),
    "a removed event": (("DELETE FROM map_events WHERE seq = 2",), {CHAIN: [3, 4, 5], ONCE: [1]}),
    "a removed newest event": (("DELETE FROM map_events WHERE seq = 5",), {STATES: [None]}),
    "removed newest events": (("DELETE FROM map_events WHERE seq >= 4",), {ONCE: [3], STATES: [None]}),
    "no events": (("DELETE FROM map_events",), {CHAIN: [None], ONCE: [1, 2, 3], SUBMITTED: [None]}),
    "an input": (("UPDATE map_items SET input = '7' WHERE position = 2",), {HASHES: [2]}),
    "an input with its hash": (
        ("UPDATE map_items SET input = '7', input_hash = sha256('7') WHERE position = 2",),
        {ONCE: [2]},
    ),
    "an output with its hash": (
        ("UPDATE map_items SET output = '7', output_hash = sha256('7') WHERE position = 2",),
        {ONCE: [2]},
    ),
    "a prompt": (("UPDATE map_runs SET prompt = 'Praise {{item}}.'",), {HASHES: [None]}),
    "a completed item that is open": (
        ("UPDATE map_items SET state = 'queued', output = NULL, output_hash = NULL WHERE position = 2",),
        {ONCE: [2], COUNTS: [None]},
    ),
    "a failed item without an event": (
        ("UPDATE map_items SET state = 'failed', error_kind = 'model', output = NULL, output_hash = NULL"
         " WHERE position = 2",),
        {ONCE: [2], STATES: [2]},
    ),
    "a removed item": (("DELETE FROM map_items WHERE position = 2",), {ONCE: [2], COUNTS: [None]}),
    "an item at another place": (
        ("UPDATE map_items SET position = 9 WHERE position = 3",),
        {ONCE: [3, 9], COUNTS: [None]},
    ),
    "another total": (("UPDATE map_runs SET total = 4",), {COUNTS: [None], SUBMITTED: [None]}),
    "an end without its time": (("UPDATE map_runs SET finished_at = NULL",), {COUNTS: [None]}),
    "a finished run that goes on": (("UPDATE map_runs SET state = 'running'",), {COUNTS: [None], STATES: [None]}),
    "an end as a failure": (("UPDATE map_runs SET state = 'failed'",), {STATES: [None]}),
    "no output": (("UPDATE map_runs SET output_file_id = NULL",), {STATES: [None]}),
    "another schema": (("UPDATE map_runs SET output_schema = '{}'",), {SCHEMAS: [None]}),
    "another schema with its hash": (
        ("UPDATE map_runs SET output_schema = '{}', schema_hash = sha256('{}')",),
        {SUBMITTED: [None]},
    ),
    "a prompt with its hash": (
        ("UPDATE map_runs SET prompt = '{{item}}', prompt_hash = sha256('{{item}}')",),
        {SUBMITTED: [None]},
    ),
    "another model": (("UPDATE map_runs SET model = 'anthropic'",), {SUBMITTED: [None]}),
    "an item completed twice": (
        (
            "INSERT INTO map_events (workspace_id, run_id, seq, actor, event, position, input_hash, output_hash,"
            " details, previous_hash, hash) SELECT workspace_id, run_id, 6, actor, event, position, input_hash,"
            " output_hash, details, (SELECT hash FROM map_events WHERE seq = 5), '' FROM map_events WHERE seq = 2",
            "UPDATE map_events e SET hash = sha256(previous_hash || convert_to(lcm_map_event_text(e), 'UTF8'))"
            " WHERE seq = 6",
        ),
        {ONCE: [1]},
    ),
}  # fmt: skip


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", BREAKS)
def test_a_change_past_the_triggers_is_found(name):
    run = completed(a_map_run(items=3))
    statements, finds = BREAKS[name]

    for statement in statements:
        forging(_TABLE.search(statement)[0], statement)

    expected = {code: [_named(run.pk, place) for place in places] for code, places in finds.items()}
    assert {code: sorted(set(ids)) for code, ids in checked().items()} == expected


TERMS = {
    "retain": "'the verdict'",
    "delegated_scope": "'everything'",
    "kept_work": "'nothing'",
    "grant_id": "NULL",
    "read_only": "false",
    "output_schema": "'true'",
    "idempotency_key": "'other'",
    "max_attempts": "9",
}


@pytest.fixture
def delegated() -> MapRun:
    grant = Grants.from_settings().issue(
        workspace_id=a_workspace().pk, question="Which?", item_ids=[], depth=1, token_cap=1000, seconds=60
    )
    terms = {"delegated_scope": "reading", "kept_work": "writing", "grant_id": grant.grant_id}
    return a_map_run(kind="agentic", items=1, **terms)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("column", TERMS)
def test_the_terms_of_a_run_cannot_be_changed_and_a_change_past_the_triggers_is_found(delegated, column):
    statement = f"UPDATE map_runs SET {column} = {TERMS[column]}"
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)

    forging("map_runs", statement)
    with_a_seal = set(checked())
    breaking(f"{statement}, row_seal = ''")

    recorded = {"output_schema": {SCHEMAS}, "idempotency_key": set(), "max_attempts": set()}
    assert with_a_seal == recorded.get(column, {SUBMITTED})
    assert checked()[SEALS] == [delegated.pk]


def test_no_run_delegates_without_its_terms(delegated):
    for column in ("retain", "delegated_scope", "kept_work"):
        with pytest.raises(DatabaseError), transaction.atomic():
            breaking(f"UPDATE map_runs SET {column} = E' \\n'")


def test_a_run_without_the_event_of_its_delegation_is_found(delegated):
    breaking("DELETE FROM map_events WHERE event = 'delegated'")

    assert checked() == {SUBMITTED: [delegated.pk]}


def test_what_is_completed_and_what_was_submitted_is_not_changed():
    completed(a_map_run(items=2))
    assert checked() == {}

    for statement in (
        "UPDATE map_items SET state = 'queued', output = NULL, output_hash = NULL",
        "UPDATE map_items SET output = '1', output_hash = sha256('1')",
        "UPDATE map_items SET input = '1'",
        "UPDATE map_items SET position = position + 7",
        "DELETE FROM map_items",
        "DELETE FROM map_runs",
        "UPDATE map_runs SET prompt = 'Praise {{item}}.'",
        "UPDATE map_runs SET total = 1",
    ):
        with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement)
    assert MapItem.objects.filter(state="done").count() == 2


def _named(run_id: str, place: int | None) -> str:
    return run_id if place is None else f"{run_id}:{place}"


def test_an_event_of_another_workspace_is_found_and_a_check_stays_in_its_own():
    run = a_map_run(items=1)
    other = a_workspace("another")

    breaking("UPDATE map_events SET workspace_id = %s", other.pk)

    assert checked() == {CHAIN: [f"{run.pk}:1"], SEALS: [f"{run.pk}:1"]}
    assert found(IntegrityChecker.from_settings(Scope(other.pk)).run()) == {}


def test_two_items_at_one_place_are_found():
    run = completed(a_map_run(items=2))
    without("map_items_have_one_place_each", "map_items")

    breaking("UPDATE map_items SET position = 1")

    assert set(checked()) == {COUNTS, ONCE, SEALS}
    assert run.pk in checked()[COUNTS]
