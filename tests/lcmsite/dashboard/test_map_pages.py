"""Map runs as pages: every state explained, narrowed, steered, and reloaded when it changes."""

from __future__ import annotations

import re

import pytest

from conversations.scope import Scope
from retrieval.map.models import MapRun
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.dashboard.furnished_past import furnish_map_runs
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part, page_of, shown_links

RUNS = "/w/default/map-runs/"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def files(settings, tmp_path) -> None:
    settings.MEDIA_ROOT = tmp_path


@pytest.fixture
def runs(db: None) -> tuple[str, str, str]:
    """One at work, one completed, one whose budget is spent."""
    return furnish_map_runs(Scope(a_workspace().pk), a_conversation("hello").conversation_id, HOSTILE, ["a", "b", "c"])


def test_map_runs_are_listed_with_the_reason_of_a_pause(runs, reader):
    page = page_of(reader, RUNS)
    paused = as_part(reader, f"{RUNS}?state=paused")

    listed = {link for link in shown_links(page) if re.fullmatch(rf"{RUNS}map_\w+/", link)}
    assert len(listed) == MapRun.objects.count() == 10 and HOSTILE not in page
    reasons = ("by a person", "fails too often", "site&#x27;s limit", "own budget", "input file is quarantined")
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


def test_an_operator_steers_a_run_and_a_reader_does_not(runs, operator, reader):
    address = f"{RUNS}{runs[0]}/"

    refused = reader.post(f"{address}pause/").status_code
    paused = operator.post(f"{address}pause/", follow=True).content.decode()
    resumed = operator.post(f"{address}resume/", follow=True).content.decode()
    retried = operator.post(f"{address}retry-failed/", follow=True).content.decode()
    cancelled = operator.post(f"{address}cancel/", follow=True).content.decode()

    assert refused == 403 and "Pause</button>" not in page_of(reader, address)
    assert "Paused." in paused and "by a person" in paused and "Resume</button>" in paused
    assert "Resumed." in resumed and "Queued again." in retried
    assert "Cancelled." in cancelled and "Cancel</button>" not in cancelled
    assert operator.post(f"{address}nonsense/").status_code == 404
