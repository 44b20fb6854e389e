"""A session summary has a page, a person has it made again there, and its jobs are listed with the others."""

from __future__ import annotations

import pytest

from compaction.history.models import HistoryJob, SessionSummary
from conversations.models import Conversation
from tests.histories import a_session, current, summarize
from tests.integrity.breaking import damaging
from tests.lcmsite.dashboard.trusting import INTEGRITY, a_checker
from tests.lcmsite.dashboard.visiting import page_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def past(settings) -> list[SessionSummary]:
    """Two sessions and their arc."""
    settings.LCM = {"sessions_per_arc": 2}
    summarize(a_session(number) for number in range(2))
    return [*current(0), *current(1)]


def test_the_page_of_a_session_leads_up_and_down(past, reader):
    page = page_of(reader, f"/w/default/projects/summaries/{past[0].pk}/")

    assert "Session summary" in page and past[0].content.partition("\n")[0][:40] in page
    assert f'href="/w/default/projects/summaries/{past[2].pk}/"' in page
    assert f'/w/default/projects/summaries/{past[0].pk}/rests-on/"' in page
    assert "Make it again" not in page


def test_findings_lead_to_the_summary_and_an_operator_has_it_made_again(past, operator):
    damaging(f"UPDATE session_summaries SET content = 'altered' WHERE summary_id = '{past[0].pk}'")
    address = f"/w/default/projects/summaries/{past[0].pk}/"
    assert f'href="{address}"' in page_of(operator, f"{INTEGRITY}reports/{a_checker().run().report_id}/")
    assert "Make it again" in page_of(operator, address)

    operator.post(f"{address}redo/", follow=True)

    job = HistoryJob.objects.get(state="queued")
    assert (job.reason, job.conversation_id) == ("manual", past[0].conversation_id)
    listed = page_of(operator, "/w/default/runs/history-jobs/?state=queued")
    assert str(Conversation.objects.get(pk=job.conversation_id)) in listed
    assert "1 about" in page_of(operator, "/w/default/")
