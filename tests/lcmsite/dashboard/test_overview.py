"""Is memory healthy: the figures of the workspace, kept up to date without a flicker, at few questions a page."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.models import CompactionJob
from compaction.types import JobState
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.models import IntegrityReport
from lcmsite.types import Role
from tests.factories import a_conversation, a_workspace
from tests.lcmsite.dashboard.visiting import browser_of, browser_of_a_superuser

HOSTILE = "<script>alert(1)</script>"
TEXTS = [f"Message {number} about the harbour and its boats. " * 30 for number in range(40)]


@pytest.fixture
def busy(db: None) -> int:
    """A workspace with a run, a job, a report and a conversation under pressure."""
    scope = Scope(a_workspace().pk)
    conversation_id = a_conversation(*TEXTS).conversation_id
    CompactionEngine.from_settings(scope).compact(conversation_id=conversation_id)
    CompactionEngine.from_settings(scope).request(conversation_id=conversation_id)
    IntegrityChecker.from_settings(scope).run()
    return a_conversation(*TEXTS[:10], title=HOSTILE, overrides={"max_active_messages": 9}).conversation_id


def counted(captured: list[dict[str, str]]) -> list[str]:
    """The statements that go over the wire, but for the savepoints of the test itself."""
    return [each["sql"] for each in captured if "SAVEPOINT" not in each["sql"]]


@pytest.mark.parametrize("role", [Role.READER, Role.ADMIN])
@pytest.mark.parametrize("piece", ["", "pulse/", "shelf/"])
def test_no_piece_asks_more_than_eight_questions(busy, role, piece, django_assert_max_num_queries):
    client = browser_of(role)

    with django_assert_max_num_queries(100) as asked:
        assert client.get(f"/w/default/{piece}").status_code == 200

    assert len(counted(asked.captured_queries)) <= 8, counted(asked.captured_queries)


def test_an_empty_workspace_says_so(db):
    page = browser_of(Role.ADMIN).get("/w/default/").content.decode()

    assert "All contexts have room." in page and "Nobody has looked yet" in page
    assert "No conversation has called for room" in page


def test_what_goes_on_is_shown_and_leads_on(busy):
    page = browser_of(Role.READER).get("/w/default/").content.decode()

    assert f'href="/w/default/conversations/{busy}/"' in page
    assert ">clean</p>" in page
    assert HOSTILE not in page and "&lt;script&gt;alert(1)" in page


def test_the_figures_of_the_chart_stand_in_the_page_as_data(busy):
    page = browser_of(Role.READER).get("/w/default/").content.decode()

    found = re.search(r'<script id="runs-data" type="application/json">(.*?)</script>', page)

    assert found is not None
    data = json.loads(found[1])
    assert len(data["hours"]) == 24
    assert {layer["name"]: sum(layer["counts"]) for layer in data["layers"]} == {
        "made room": 1,
        "nothing to make": 0,
        "in trouble": 0,
    }


def test_what_has_not_changed_is_not_sent_again(busy):
    client = browser_of(Role.READER)
    # What is told in seconds changes by itself.
    earlier = timezone.now() - timedelta(minutes=90)
    CompactionJob.objects.update(requested_at=earlier)
    IntegrityReport.objects.update(started_at=earlier)
    first = client.get("/w/default/pulse/").content.decode()
    mark = re.search(r'name="seen" value="(\w+)"', first)
    assert mark is not None

    again = client.get(f"/w/default/pulse/?seen={mark[1]}")
    CompactionJob.objects.update(state=JobState.FAILED, finished_at="2999-01-01T00:00:00Z")
    changed = client.get(f"/w/default/pulse/?seen={mark[1]}")

    assert (again.status_code, again.content) == (204, b"")
    assert changed.status_code == 200 and "given up" in changed.content.decode()


def test_the_models_of_the_site_are_shown_to_superusers_alone(busy):
    links = 'href="/w/default/models/"'

    for role in Role:
        page = browser_of(role).get("/w/default/").content.decode()
        assert "models-title" not in page and links not in page, role
    page = browser_of_a_superuser().get("/w/default/").content.decode()
    assert "models-title" in page and links in page


def test_acts_of_administrators_are_shown_to_admins_alone(busy):
    reader, admin = browser_of(Role.READER), browser_of(Role.ADMIN)

    assert "Lately administrated" not in reader.get("/w/default/shelf/").content.decode()
    assert "set role" in admin.get("/w/default/shelf/").content.decode()


def test_models_are_shown_and_reset_by_superusers_alone(db):
    admin, superuser = browser_of(Role.ADMIN), browser_of_a_superuser()

    assert admin.get("/w/default/models/").status_code == 403
    assert admin.post("/w/default/models/chat/reset/").status_code == 403
    assert "not configured" in superuser.get("/w/default/models/").content.decode()
    told = superuser.post("/w/default/models/chat/reset/", follow=True).content.decode()
    assert "chat is asked again from now on." in told
    assert superuser.post("/w/default/models/nobody/reset/").status_code == 404
