"""Sessions: they end by their time, and nothing of them stays."""

from __future__ import annotations

import pytest
from django.contrib.sessions.models import Session
from django.utils import timezone

from lcmsite.tasks import forget_ended_sessions
from tests.lcmsite.dashboard.visiting import browser_of


@pytest.mark.django_db
def test_sessions_that_have_ended_are_forgotten_and_nobody_else_is_put_out():
    gone, here = browser_of("reader"), browser_of("operator")
    ended = Session.objects.filter(session_key=gone.cookies["sessionid"].value)
    ended.update(expire_date=timezone.now())

    forget_ended_sessions.call_local()

    assert not ended.exists()
    assert here.get("/w/default/").status_code == 200
