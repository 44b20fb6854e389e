"""Whatever is changed past the triggers in the rows of map runs is found by a check."""

from __future__ import annotations

import pytest

from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from tests.factories import a_workspace
from tests.integrity.breaking import breaking, checked, found, without
from tests.maps import a_map_run, completed

pytestmark = pytest.mark.django_db

CHAIN = "map_events_are_chained"
HASHES = "map_items_match_their_hashes"
ONCE = "map_completions_are_recorded_once"
COUNTS = "map_counts_add_up"

BREAKS = {
    "an event by somebody else": (("UPDATE map_events SET actor = 'x' WHERE seq = 2",), {CHAIN: [2]}),
    "an event of another kind": (("UPDATE map_events SET event = 'paused' WHERE seq = 5",), {CHAIN: [5]}),
    "an event at another time": (("UPDATE map_events SET at = at - interval '1 day' WHERE seq = 3",), {CHAIN: [3]}),
    "other details": (("UPDATE map_events SET details = '{\"a\": 1}' WHERE seq = 3",), {CHAIN: [3]}),
    "a hash": (("UPDATE map_events SET hash = sha256('x') WHERE seq = 3",), {CHAIN: [3, 4]}),
    "a removed event": (("DELETE FROM map_events WHERE seq = 2",), {CHAIN: [3, 4, 5], ONCE: [1]}),
    "removed newest events": (("DELETE FROM map_events WHERE seq >= 4",), {ONCE: [3]}),
    "no events": (("DELETE FROM map_events",), {CHAIN: [None], ONCE: [1, 2, 3]}),
    "an input": (("UPDATE map_items SET input = '7' WHERE position = 2",), {HASHES: [2]}),
    "an output": (("UPDATE map_items SET output = '7' WHERE position = 2",), {HASHES: [2]}),
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
    "a removed item": (("DELETE FROM map_items WHERE position = 2",), {ONCE: [2], COUNTS: [None]}),
    "an item at another place": (
        ("UPDATE map_items SET position = 9 WHERE position = 3",),
        {ONCE: [3, 9], COUNTS: [None]},
    ),
    "another total": (("UPDATE map_runs SET total = 4",), {COUNTS: [None]}),
    "an end without its time": (("UPDATE map_runs SET finished_at = NULL",), {COUNTS: [None]}),
    "a finished run that goes on": (("UPDATE map_runs SET state = 'running'",), {COUNTS: [None]}),
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


@pytest.mark.parametrize("name", BREAKS)
def test_a_change_past_the_triggers_is_found(name):
    run = completed(a_map_run(items=3))
    statements, finds = BREAKS[name]
    assert checked() == {}

    for statement in statements:
        breaking(statement)

    expected = {code: [_named(run.pk, place) for place in places] for code, places in finds.items()}
    assert checked() == expected


def _named(run_id: str, place: int | None) -> str:
    return run_id if place is None else f"{run_id}:{place}"


def test_an_event_of_another_workspace_is_found_and_a_check_stays_in_its_own():
    run = a_map_run(items=1)
    other = a_workspace("another")

    breaking("UPDATE map_events SET workspace_id = %s", other.pk)

    assert checked() == {CHAIN: [f"{run.pk}:1"]}
    assert found(IntegrityChecker.from_settings(Scope(other.pk)).run()) == {}


def test_two_items_at_one_place_are_found():
    run = completed(a_map_run(items=2))
    without("map_items_have_one_place_each", "map_items")

    breaking("UPDATE map_items SET position = 1")

    assert set(checked()) == {COUNTS, ONCE}
    assert run.pk in checked()[COUNTS]
