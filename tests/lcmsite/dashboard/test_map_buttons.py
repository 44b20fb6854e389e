"""The buttons of a map run's page do what they say, and hostile values stay text."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from conversations.scope import Scope
from integrity.repairs.quarantines import Quarantines
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.models import MapEvent, MapRun
from tests.factories import a_workspace
from tests.lcmsite.dashboard.visiting import HOSTILE, page_of
from tests.maps import a_map_run, completed

BUTTONS = ("Pause", "Resume", "Retry failed items", "Cancel")


@pytest.fixture
def run(db: None) -> MapRun:
    return a_map_run(kind="agentic", max_attempts=1)


def path_of(run: MapRun, act: str = "") -> str:
    return f"/w/default/map-runs/{run.pk}/{f'{act}/' if act else ''}"


def shown(browser, run: MapRun) -> list[str]:
    page = page_of(browser, path_of(run))
    return [button for button in BUTTONS if f">{button}</button>" in page]


def fail_one(run: MapRun) -> None:
    claims = AgenticClaims(Scope(a_workspace().pk, actor="agent"))
    [item] = claims.claim(run_id=run.pk, worker="agent").items
    claims.complete(item_id=item.item_id, fence=item.fence, error=HOSTILE)


def test_a_run_is_paused_resumed_and_cancelled_by_its_buttons(run, operator):
    steps = [("pause", "Paused.", "paused"), ("resume", "Resumed.", "queued"), ("cancel", "Cancelled.", "cancelled")]
    offered = []
    for act, done, state in steps:
        offered.append(shown(operator, run))
        page = operator.post(path_of(run, act), follow=True).content.decode()
        run.refresh_from_db()
        assert (run.state, done in page) == (state, True)

    assert [*offered, shown(operator, run)] == [["Pause", "Cancel"], ["Resume", "Cancel"], ["Pause", "Cancel"], []]
    events = MapEvent.objects.filter(run=run).order_by("seq").values_list("event", "actor")
    assert [event for event, _ in events][2:] == ["paused", "resumed", "cancelled"]
    assert len({actor for _, actor in events[2:]}) == 1 and "a-operator" in events[2][1]


def test_failed_items_are_queued_again_by_their_button(run, operator):
    fail_one(run)
    assert "Retry failed items" in shown(operator, run)

    page = operator.post(path_of(run, "retry-failed"), follow=True).content.decode()

    assert "Queued again." in page
    assert set(run.items.values_list("state", "refused_answers")) == {("queued", 0)}
    assert "Retry failed items" not in shown(operator, run)


@pytest.mark.parametrize("act", ["pause", "resume", "retry-failed", "cancel"])
def test_a_button_of_a_page_that_is_out_of_date_changes_nothing_and_says_why(run, operator, act):
    completed(run)

    page = operator.post(path_of(run, act), follow=True).content.decode()

    run.refresh_from_db()
    assert run.state == "completed"
    assert "submit another one" in page or "has failed" in page


@pytest.mark.parametrize("act", ["delete", "pause%00", "..", "<script>"])
def test_there_is_no_other_button(run, operator, act):
    assert operator.post(path_of(run, act)).status_code in (400, 404)
    assert operator.post(f"/w/default/map-runs/{run.pk}x/pause/").status_code == 404
    assert MapRun.objects.get(pk=run.pk).state == "queued"


def test_items_of_a_quarantined_file_are_named_without_their_texts(run, operator):
    fail_one(run)
    Quarantines.from_settings().quarantine(id=run.input_file_id, reason="It was altered.")

    page = page_of(operator, path_of(run))

    assert page.count(">quarantined</span>") == 3
    assert "{&quot;n&quot;:1}" not in page and "alert(1)" not in page


def test_a_run_over_a_quarantined_file_is_not_resumed_and_the_page_says_why(run, operator):
    operator.post(path_of(run, "pause"))
    Quarantines.from_settings().quarantine(id=run.input_file_id, reason="It was altered.")

    page = operator.post(path_of(run, "resume"), follow=True).content.decode()

    run.refresh_from_db()
    assert (run.state, run.pause_reason) == ("paused", "person") and "release the file" in page


def test_hostile_values_stay_text_and_the_page_takes_few_queries(db, operator):
    run = a_map_run(kind="agentic", prompt=f"{HOSTILE} {{{{item}}}}", retain=HOSTILE, kept_work=HOSTILE, max_attempts=1)
    fail_one(run)
    path_and_pages = [path_of(run), f"{path_of(run)}?state=failed", "/w/default/map-runs/"]
    operator.get(path_and_pages[0])

    for path in path_and_pages:
        with CaptureQueriesContext(connection) as queries:
            page = page_of(operator, path)
        assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)" in page
        assert len(queries) <= 8, [query["sql"][:100] for query in queries]
    assert operator.get(path_of(run), {"state": HOSTILE, "cursor": HOSTILE}).status_code in (200, 400)
