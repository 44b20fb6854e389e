"""Whoever opens a page is somebody, in a workspace of theirs; and nothing else is let into a page."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from axes.models import AccessAttempt, AccessLog
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from conversations.scope import Scope
from lcmsite.access import users
from lcmsite.dashboard.templatetags.lcm_tags import ago
from lcmsite.types import Role
from tests.factories import a_workspace
from tests.lcmsite.dashboard.visiting import Browser

PROJECT = Path(__file__).resolve().parents[3]
PASSWORD = "correct horse"


@pytest.fixture
def ann(db: None) -> Client:
    """A reader's browser, which checks forms as a real one would have to."""
    users.add(Scope(a_workspace().pk), username="ann", role=Role.READER, password=PASSWORD)
    client = Browser(enforce_csrf_checks=True)
    token = client.get("/login/").context["csrf_token"]
    client.post("/login/", {"username": "ann", "password": PASSWORD, "csrfmiddlewaretoken": str(token)})
    return client


def test_who_logs_in_is_shown_their_workspace_as_long_as_they_are_in_one(ann):
    shown = ann.get("/", follow=True)
    from_elsewhere = ann.post("/logout/")
    users.remove(Scope(a_workspace().pk), username="ann")
    nowhere = ann.get("/")

    assert shown.redirect_chain == [("/w/default/", 302)] and "Overview" in shown.content.decode()
    # A form of another site logs nobody out.
    assert from_elsewhere.status_code == nowhere.status_code == 403
    assert "You are not a member of a workspace" in nowhere.content.decode()


def test_whose_session_has_ended_is_asked_to_log_in_and_comes_back_to_a_page(ann):
    ann.logout()

    part = ann.get("/w/default/pulse/", headers={"HX-Request": "true"})
    ann.handler.enforce_csrf_checks = False
    form = ann.post("/w/default/retention/rule/", {"rule": "never"})
    back = ann.post(form["Location"], {"username": "ann", "password": PASSWORD}, follow=True)

    assert (part["HX-Refresh"], part.content) == ("true", b"")
    assert back.redirect_chain == [("/w/default/retention/rule/", 302), ("/w/default/retention/", 302)]
    assert "Nothing was done now" in back.content.decode()


def test_the_address_of_any_form_leads_to_the_page_above_it(ann):
    closest = [
        ann.get(f"/w/default/{path}")["Location"]
        for path in ("keys/7/revocation/", "conversations/7/context/receipts/", "models/chat/reset/")
    ]

    assert closest == ["/w/default/keys/", "/w/default/conversations/7/context/", "/w/default/models/"]
    assert ann.delete("/w/default/keys/new/").status_code == 403


def test_a_form_from_before_another_login_is_refused_with_words(ann):
    page = ann.post("/w/default/ask/", {"question": "why?", "csrfmiddlewaretoken": "a" * 64})
    part = ann.post("/w/default/ask/", {"question": "why?"}, headers={"HX-Request": "true"})

    for answer in (page, part):
        assert answer.status_code == 403
        assert "Nothing was done: the form is out of date." in answer.content.decode()
    assert "<html" in page.content.decode() and "<html" not in part.content.decode()


def test_the_back_button_is_given_a_whole_page(ann):
    path, asked = "/w/default/search/?query=boats", {"HX-Request": "true"}

    part = ann.get(path, headers=asked).content.decode()
    back = ann.get(path, headers={**asked, "HX-History-Restore-Request": "true"}).content.decode()

    assert "<form" not in part
    assert "<html" in back and 'value="boats"' in back


@pytest.mark.parametrize(
    ("days", "words"), [(21, ">21 d ago</time>"), (31, ">2026-05-01</time>"), (-90, ">2026-08-30</time>")]
)
def test_a_time_over_a_month_away_is_a_date(days, words, monkeypatch):
    now = datetime(2026, 6, 1, 12, tzinfo=UTC)
    monkeypatch.setattr(timezone, "now", lambda: now)

    assert words in ago(now - timedelta(days=days))


def test_a_new_password_is_confirmed(ann):
    ann.handler.enforce_csrf_checks = False
    new = {"old_password": PASSWORD, "new_password1": "wrong horse 77", "new_password2": "wrong horse 77"}

    answer = ann.post("/password/", new, follow=True)

    assert "Your password was changed." in answer.content.decode()


def test_a_foreign_workspace_looks_like_none(ann):
    a_workspace("theirs")

    foreign, missing = ann.get("/w/theirs/"), ann.get("/w/nowhere/")

    assert foreign.status_code == missing.status_code == 404
    told = [answer.content.decode().partition("<main")[2] for answer in (foreign, missing)]
    assert told[0].replace("theirs", "nowhere") == told[1] and "nowhere" in told[1]


@pytest.mark.parametrize("path", ["/nothing", "/w/default/nothing/"])
def test_an_address_that_leads_nowhere_leads_back(client, path):
    answer = client.get(path)

    assert answer.status_code == 404
    assert "There is no page at this address." in answer.content.decode()
    assert 'href="/"' in answer.content.decode()


def test_nothing_in_a_page_may_come_from_elsewhere_or_stand_in_it(ann):
    policy = ann.get("/w/default/")["Content-Security-Policy"]

    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "style-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/login/", "/admin/login/"])
def test_a_name_tried_too_often_has_to_wait(path):
    get_user_model().objects.create_superuser("ann", password=PASSWORD)
    client = Browser()

    tries = [client.post(path, {"username": "ann", "password": f"wrong {n}"}).status_code for n in range(5)]
    right = client.post(path, {"username": "ann", "password": PASSWORD})

    assert tries == [200, 200, 200, 200, 429]
    assert right.status_code == 429
    assert "Too many attempts" in right.content.decode()


@pytest.mark.django_db
def test_of_who_logged_in_and_out_no_address_is_kept():
    users.add(Scope(a_workspace().pk), username="ann", role=Role.READER, password=PASSWORD)
    client = Browser()

    for password in ("wrong", PASSWORD):
        client.post("/login/", {"username": "ann", "password": password})
    client.post("/logout/")

    assert not AccessLog.objects.exists()
    assert not AccessAttempt.objects.exists()


@pytest.mark.django_db
def test_a_program_pays_for_no_session(django_assert_num_queries):
    with django_assert_num_queries(0):
        answer = Browser().get("/api/v1/conversations/")

    assert answer.status_code == 401
    assert not answer.cookies and "Content-Security-Policy" not in answer


@pytest.mark.parametrize("folder", ["lcmsite/static/vendor", "tests/browser/vendor"])
def test_other_peoples_code_is_as_they_published_it(folder):
    lines = (PROJECT / folder / "SHA256SUMS").read_text().splitlines()
    listed = {name: sha256 for sha256, name in (line.split("  ") for line in lines)}

    assert listed == {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (PROJECT / folder).iterdir()
        if path.suffix in (".js", ".css")
    }
