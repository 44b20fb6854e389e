"""Is memory healthy: the figures of the workspace, kept up to date without a flicker, at few questions a page."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.models import CompactionJob
from compaction.types import JobState, Outcome
from conversations.models import Conversation
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.models import ConversationCheck, IntegrityReport
from lcmsite.dashboard.parts.charting import LAYERS
from tests.factories import a_conversation, a_workspace, say
from tests.lcmsite.callers import lcm
from tests.lcmsite.dashboard.visiting import browser_of, page_of

TEXTS = [f"Message {number} about the harbour and its boats. " * 30 for number in range(40)]


@pytest.fixture(scope="module")
def busy(module_rows: None) -> int:
    """A workspace with a run, a job, a report and a conversation under pressure."""
    scope = Scope(a_workspace().pk)
    conversation_id = a_conversation(*TEXTS).conversation_id
    CompactionEngine.from_settings(scope).compact(conversation_id=conversation_id)
    CompactionEngine.from_settings(scope).request(conversation_id=conversation_id)
    IntegrityChecker.from_settings(scope).run()
    return a_conversation(*TEXTS[:10], overrides={"max_active_messages": 9}).conversation_id


def test_an_empty_workspace_says_so(db):
    page = page_of(browser_of("admin", workspace=a_workspace("empty")), "/w/empty/")

    assert "No conversation is under pressure." in page and "no full check yet" in page
    assert "No runs in this time" in page


def test_what_goes_on_is_shown_with_the_figures_of_its_chart(busy, reader):
    page = page_of(reader, "/w/default/")
    found = re.search(r'<script id="runs-data" type="application/json">(.*?)</script>', page)

    assert f'href="/w/default/conversations/{busy}/"' in page
    assert found is not None
    data = json.loads(found[1])
    assert len(data["hours"]) == 24
    assert {layer["name"]: sum(layer["counts"]) for layer in data["layers"]} == {
        "compacted": 1, "nothing to do": 0, "problems": 0,
    }  # fmt: skip


def test_every_outcome_of_a_run_is_in_one_layer_of_the_chart():
    assert sorted(outcome for outcomes in LAYERS.values() for outcome in outcomes) == sorted(Outcome)


def integrity_of(page: str) -> str:
    """What the overview, or the page Integrity, says of everything, as text."""
    found = re.search(r'id="to-integrity".*?</div>', page, re.S) or re.search(r"<h1>Integrity</h1>.*?</p>", page, re.S)
    assert found is not None
    return " ".join(re.sub(r"<[^>]*>", " ", found[0].partition(">")[2]).split())


def test_a_check_of_one_conversation_does_not_make_everything_clean(busy, reader):
    scope = Scope(a_workspace().pk)
    IntegrityReport.objects.all().delete()
    ConversationCheck.objects.all().delete()
    IntegrityChecker.from_settings(scope).run(conversation_id=busy)

    for path in ("", "integrity/"):
        told = integrity_of(page_of(reader, f"/w/default/{path}"))
        assert "no full check yet" in told and "10 of 50 messages checked" in told
        assert "clean" not in told


def test_everything_is_clean_by_a_check_of_everything_alone_and_says_what_is_newer(busy, reader):
    checker = IntegrityChecker.from_settings(Scope(a_workspace().pk))
    shown = {}

    def look(when: str) -> None:
        for path in ("", "integrity/"):
            shown[when, path] = integrity_of(page_of(reader, f"/w/default/{path}"))

    checker.run()
    look("all of it")
    say(busy, "One more.", "Two.")
    look("two more")
    checker.run(conversation_id=busy, extent="incremental")
    look("one conversation since")

    for path in ("", "integrity/"):
        assert "clean" in shown["all of it", path] and "all 50 messages checked" in shown["all of it", path]
        for when in ("two more", "one conversation since"):
            assert "50 of 52 messages checked" in shown[when, path] and "2 are newer" in shown[when, path]


def test_damage_that_any_check_found_shows_until_it_is_mended(busy, reader):
    checker = IntegrityChecker.from_settings(Scope(a_workspace().pk))
    checker.run()
    Conversation.objects.filter(pk=busy).update(active_tokens=1)
    checker.run(conversation_id=busy)
    checker.run(conversation_id=busy - 1)

    pages = [page_of(reader, f"/w/default/{path}") for path in ("", "integrity/")]

    assert all("1 conversation with findings" in integrity_of(page) for page in pages)
    assert lcm("integrity").exit_code == 1


def test_what_has_not_changed_is_not_sent_again(busy, reader):
    # What is told in seconds changes by itself.
    earlier = timezone.now() - timedelta(minutes=90)
    CompactionJob.objects.update(requested_at=earlier)
    IntegrityReport.objects.update(started_at=earlier)
    first = reader.get("/w/default/pulse/").content.decode()
    mark = re.search(r'name="seen" value="(\w+)"', first)
    assert mark is not None

    again = reader.get(f"/w/default/pulse/?seen={mark[1]}")
    CompactionJob.objects.update(state=JobState.FAILED, finished_at="2999-01-01T00:00:00Z")
    changed = reader.get(f"/w/default/pulse/?seen={mark[1]}")

    assert (again.status_code, again.content) == (204, b"")
    assert changed.status_code == 200 and '?state=failed"' in changed.content.decode()


def test_models_of_the_site_are_shown_and_reset_by_superusers_alone(operator, admin, superuser):
    overviews = [page_of(browser, "/w/default/") for browser in (operator, admin, superuser)]

    told = superuser.post("/w/default/models/chat/reset/", follow=True).content.decode()

    assert ["models-title" in page and 'href="/w/default/models/"' in page for page in overviews] == [
        False,
        False,
        True,
    ]
    assert "chat was resumed." in told and "not configured" in told
    assert superuser.post("/w/default/models/nobody/reset/").status_code == 404


def test_acts_of_administrators_are_shown_to_admins_alone(reader, admin):
    assert "Recent audit entries" not in page_of(reader, "/w/default/shelf/")
    assert "set role" in page_of(admin, "/w/default/shelf/")


def test_the_levels_of_new_summaries_and_the_degraded_share_are_shown(busy, reader, settings):
    whole = " ".join(re.sub(r"<[^>]*>", " ", page_of(reader, "/w/default/")).split())
    settings.LCM = {**settings.LCM, "summarizer": "chat,extractive"}
    CompactionEngine.from_settings().compact(conversation_id=a_conversation(*TEXTS).conversation_id)

    degraded = " ".join(re.sub(r"<[^>]*>", " ", page_of(reader, "/w/default/")).split())

    assert re.search(r"Summaries in 24 hours \d 100 % normal Integrity", whole)
    assert re.search(r"Summaries in 24 hours \d 100 % normal · 50 % degraded", degraded)
