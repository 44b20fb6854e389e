"""Map runs as pages: every state explained, narrowed, reloaded when it changes, and steered by buttons."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conversations.scope import Scope
from integrity.repairs.quarantines import Quarantines
from retrieval.map.agentic_claims import AgenticClaims
from retrieval.map.models import MapEvent, MapRun
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.dashboard.furnished_past import furnish_map_runs
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part, page_of, shown_links
from tests.maps import a_map_run, completed

RUNS = "/w/default/map-runs/"
BUTTONS = ("Pause", "Resume", "Retry failed items", "Cancel")
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def runs(module_rows: None, module_files: Path) -> tuple[str, str, str]:
    """One at work, one completed, one whose budget is spent."""
    conversation_id = a_conversation("hello").conversation_id
    return furnish_map_runs(Scope(a_workspace().pk), conversation_id, HOSTILE, ["a", "b", "c"])


def test_map_runs_are_listed_with_the_reason_of_a_pause(runs, reader):
    page = page_of(reader, RUNS)
    paused = as_part(reader, f"{RUNS}?state=paused")

    listed = {link for link in shown_links(page) if re.fullmatch(rf"{RUNS}map_\w+/", link)}
    assert len(listed) == MapRun.objects.count() == 10 and HOSTILE not in page
    reasons = ("by a person", "fails too often", "site&#x27;s limit", "token budget", "input file is quarantined")
    assert all(words in paused for words in reasons)
    assert len(re.findall(r"map_\w+/", paused)) == 5 and "No map run matches." not in paused


def test_a_run_shows_its_items_files_and_record(runs, reader):
    page = page_of(reader, f"{RUNS}{runs[1]}/")
    failed = as_part(reader, f"{RUNS}{runs[1]}/?state=failed")

    assert "1 of 3 done" in page and "2 failed" in page and ">finished</span>" in page and HOSTILE not in page
    assert len([link for link in shown_links(page) if "/files/file_" in link]) == 3
    assert failed.count('data-label="State"') == 2 and "<html" not in failed


def test_progress_is_loaded_again_until_the_state_changes(runs, reader):
    at_work, completed, _ = runs
    page = page_of(reader, f"{RUNS}{at_work}/")
    [address] = re.findall(r'hx-get="([^"]+progress[^"]+)"', page)

    same = reader.get(address)
    changed = reader.get(address.replace("running", "queued"))
    over = reader.get(f"{RUNS}{completed}/progress/?state=completed")

    assert "0 of 3 done, 1 leased" in same.content.decode() and "HX-Refresh" not in same.headers
    assert changed.headers["HX-Refresh"] == "true"
    assert "hx-get" not in over.content.decode() and "HX-Refresh" not in over.headers


@pytest.fixture
def run(db: None) -> MapRun:
    return a_map_run(kind="agentic", max_attempts=1)


def path_of(run: MapRun, act: str = "") -> str:
    return f"{RUNS}{run.pk}/{f'{act}/' if act else ''}"


def shown(browser, run: MapRun) -> list[str]:
    page = page_of(browser, path_of(run))
    return [button for button in BUTTONS if f">{button}</button>" in page]


def fail_one(run: MapRun) -> None:
    claims = AgenticClaims(Scope(a_workspace().pk, actor="agent"))
    [item] = claims.claim(run_id=run.pk, worker="agent").items
    claims.complete(item_id=item.item_id, fence=item.fence, error=HOSTILE)


def test_a_run_is_paused_resumed_and_cancelled_by_the_buttons_that_operators_have(run, operator, reader):
    assert shown(reader, run) == [] and reader.post(path_of(run, "pause")).status_code == 403
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


def test_a_button_that_there_is_not_or_no_longer_changes_nothing_and_says_why(run, operator):
    for act in ("delete", "pause%00", "..", "<script>"):
        assert operator.post(path_of(run, act)).status_code in (400, 404)
    assert operator.post(f"{RUNS}{run.pk}x/pause/").status_code == 404
    assert operator.get(path_of(run), {"state": HOSTILE, "cursor": HOSTILE}).status_code in (200, 400)
    completed(run)

    for act in ("pause", "resume", "retry-failed", "cancel"):
        page = operator.post(path_of(run, act), follow=True).content.decode()
        run.refresh_from_db()
        assert run.state == "completed" and ("submit another one" in page or "has failed" in page)


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
