"""Map runs through the faces: an agent over REST, and the verbs that read files and write the record."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now

from retrieval.map.models import MapItem, MapRun
from tests.factories import a_conversation
from tests.lcmsite.callers import Api, an_api_key, lcm
from tests.maps import SCHEMA

pytestmark = pytest.mark.django_db

NO_RETENTION = "Delegation without retention violates scope-reduction invariant."
GOOD = {"label": "a boat"}


@pytest.fixture
def session(db: None) -> str:
    a_conversation("There is much to label.", session_id="harbour")
    return "harbour"


def agentic(session: str, *more: str, items: str = '{"n": 1}\n{"n": 2}\n') -> Any:
    arguments = ("Label {{item}}.", "--schema", json.dumps(SCHEMA), "--in", session, *more)
    return lcm("--json", "map", "agentic", *arguments, stdin=items.encode())


def test_an_agent_dies_over_rest_another_takes_over_and_the_first_comes_back_late(session):
    run_id = agentic(session, "--retain", "the final word", items='{"n": 1}\n').json["run_id"]
    first, second = Api(an_api_key(None, "write")), Api(an_api_key(None, "write"))
    dead = first.post(f"map-runs/{run_id}/claims/", {"worker": "first", "lease_s": 1}).body["items"][0]
    MapItem.objects.update(leased_until=Now() - timedelta(seconds=1))

    taken = second.post(f"map-runs/{run_id}/claims/", {"worker": "second"}).body["items"][0]
    late = first.post(f"map-items/{dead['item_id']}/completion/", {"fence": dead["fence"], "output": GOOD})
    invalid = second.post(f"map-items/{taken['item_id']}/completion/", {"fence": taken["fence"], "output": {}})
    done = second.post(f"map-items/{taken['item_id']}/completion/", {"fence": taken["fence"], "output": GOOD})

    assert (late.status, late.body["code"], late.body["retryable"]) == (409, "lease_lost", False)
    assert (invalid.status, invalid.body["code"]) == (400, "output_invalid")
    assert invalid.body["errors"] == {"output": ["$: 'label' is a required property"]}
    assert (done.status, done.body["state"]) == (200, "done")
    assert second.get(f"map-runs/{run_id}/").body["state"] == "completed"
    events = [each["event"] for each in second.get(f"map-runs/{run_id}/events/").body["items"]]
    assert events == ["submitted", "delegated", "claimed", "claimed", "released", "completed", "finished"]


@pytest.mark.parametrize("terms", [(), ("--retain", ""), ("--retain", "  ")])
def test_a_delegation_without_retention_is_refused_in_the_words_of_the_specification(session, terms):
    refused = agentic(session, *terms)

    assert (refused.exit_code, refused.problem["detail"]) == (2, NO_RETENTION)
    assert not MapRun.objects.exists()


def test_items_come_from_a_file_and_are_worked_on_from_the_command_line(session, tmp_path):
    path = tmp_path / "items.jsonl"
    path.write_text('{"n": 1.50}\n')
    run_id = agentic(session, "--retain", "the final word", "--input", str(path)).json["run_id"]

    [item] = lcm("--json", "map", "claim", run_id, "me").json["items"]
    lcm("--json", "map", "complete", str(item["item_id"]), str(item["fence"]), "--output", json.dumps(GOOD))

    assert item["input"] == '{"n": 1.50}'
    assert lcm("--json", "map", "status", run_id).json["state"] == "completed"
    assert lcm("--json", "map", "output", run_id).json["items"][0]["output"] == '{"label":"a boat"}'


def test_the_record_is_exported_and_verified_and_a_changed_one_found(session, tmp_path):
    agentic(session, "--retain", "the final word")
    path = tmp_path / "map.events.jsonl"

    exported = lcm("--json", "map", "events", "-o", str(path))
    shown = lcm("map", "verify", str(path))
    clean = lcm("--json", "map", "verify", str(path))
    path.write_text(path.read_text().replace('"items": 2', '"items": 3'))
    changed = lcm("--json", "map", "verify", str(path))

    assert exported.json["lines"] == 2
    # Whoever keeps the head of a run elsewhere can read all of it.
    assert all(head in shown.out for head in exported.json["heads"].values())
    assert (clean.exit_code, clean.json["is_clean"]) == (0, True)
    assert (changed.exit_code, changed.json["by_code"]) == (1, {"hash_differs": 1})


def test_an_output_is_read_page_by_page(session):
    run_id = agentic(session, "--retain", "the final word").json["run_id"]
    api = Api(an_api_key(None, "write"))
    for item in api.post(f"map-runs/{run_id}/claims/", {"worker": "one", "count": 2}).body["items"]:
        api.post(f"map-items/{item['item_id']}/completion/", {"fence": item["fence"], "output": GOOD})

    first = api.get(f"map-runs/{run_id}/output/", limit=1).body
    second = api.get(f"map-runs/{run_id}/output/", limit=1, cursor=first["next_cursor"]).body

    assert [first["items"][0]["position"], second["items"][0]["position"]] == [1, 2]
    assert "next_cursor" not in second
