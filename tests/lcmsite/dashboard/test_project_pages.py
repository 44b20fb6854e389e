"""Time lines as pages: each kind and state of an entry, page by page, and down to the messages."""

from __future__ import annotations

import re

import pytest

from compaction.history.models import HistoryJob, SessionSummary
from conversations.scope import Scope
from retrieval.policy import RetrievalPolicy
from tests.factories import a_workspace
from tests.integrity.breaking import damaging
from tests.lcmsite.dashboard.furnished_past import YOUNG, FurnishedPast, furnish_past
from tests.lcmsite.dashboard.trusting import INTEGRITY, a_report_on
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part, older_in, page_of, shown_links
from tests.pasts import a_project, a_session, a_session_summary

PROJECTS = "/w/default/projects/"
TIMELINE = f"{PROJECTS}timeline/?project=harbour"
pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def past(module_rows: None) -> FurnishedPast:
    return furnish_past(Scope(a_workspace().pk), "harbour", [f"{HOSTILE} boat {n} " * 40 for n in range(3)])


def entries(page: str) -> list[str]:
    return re.findall(r'<article class="hit summary">.*?</article>', page, re.DOTALL)


def test_a_time_line_shows_the_state_of_each_session(past, reader):
    page = page_of(reader, f"{TIMELINE}&kind=session")

    shown = [re.sub(r"<[^>]+>", " ", each) for each in entries(page)]
    marks = ("no summary yet", "erased", "quarantined", "degraded", "1 newer", "subagent of", "part of")
    assert HOSTILE not in page and len(shown) == 8
    assert [sum(mark in each for each in shown) for mark in marks] == [2, 1, 1, 1, 1, 1, 2]
    assert "The text of this summary was erased" in page and "The text of this summary is withheld" in page
    assert past.superseded_id not in page


def test_a_time_line_is_narrowed_to_a_kind(past, reader):
    counts = {"": 10, "arc": 1, "epoch": 1, "nonsense": 10}

    assert {kind: len(entries(page_of(reader, f"{TIMELINE}&kind={kind}"))) for kind in counts} == counts


def test_what_is_empty_says_why(past, superuser):
    for address, words in (
        (f"{PROJECTS}timeline/?project={YOUNG}&kind=arc", "An arc is made when enough sessions"),
        (f"{PROJECTS}timeline/?project={YOUNG}&kind=epoch", "An epoch is made when"),
        (f"{PROJECTS}timeline/?project=a project without conversations", "Every conversation is a session"),
        ("/w/bare/projects/", "No projects yet."),
    ):
        assert words in page_of(superuser, address)


def test_words_are_found_in_the_summaries_page_by_page(past, reader):
    project = a_project("search")
    ids = [a_session_summary(a_session(project).conversation_id, f"{HOSTILE} lighthouse").pk for _ in range(21)]

    first = page_of(reader, f"{PROJECTS}timeline/?project=search&query=lighthouse")
    older = older_in(first)
    assert older is not None
    second = page_of(reader, f"{PROJECTS}timeline/{older}")

    shown = [set(re.findall(r"/summaries/(ses_\w+)/", page)) for page in (first, second)]
    assert [len(each) for each in shown] == [20, 1] and set.union(*shown) == set(ids)
    assert "<mark>lighthouse</mark>" in first and HOSTILE not in first
    assert older_in(second) is None


def test_a_search_of_summaries_says_what_came_of_it(past, reader):
    for query, words in (("zeppelin", "No summary has these words."), ("the+-port", "no word"), ("boat", "arc")):
        page = page_of(reader, f"{TIMELINE}&query={query}&kind=arc")
        assert words in page and 'name="query"' in page


def test_each_summary_opens_down_to_its_messages(past, reader):
    def opened(id: str) -> str:
        return as_part(reader, f"{PROJECTS}summaries/{id}/rests-on/")

    epoch = opened(past.epoch_id)
    [arc_id] = set(re.findall(r"ses_\w+", epoch)) - {past.epoch_id}
    sessions = sorted(set(re.findall(r"ses_\w+", opened(arc_id))))

    assert "<html" not in epoch and len(sessions) == 2
    assert "Message 1</a>" in opened(sessions[0])

    page = page_of(reader, f"{PROJECTS}summaries/{sessions[0]}/")
    assert "Session summary" in page and ">Regenerate<" not in page
    assert {f"{PROJECTS}summaries/{arc_id}/"} <= {*shown_links(page)}
    assert f'{PROJECTS}summaries/{sessions[0]}/rests-on/"' in page


def test_findings_lead_to_the_summary_and_an_operator_has_it_made_again(past, operator):
    HistoryJob.objects.all().delete()
    summary = SessionSummary.objects.get(supersedes=past.superseded_id)
    damaging(f"UPDATE session_summaries SET content = 'altered' WHERE summary_id = '{summary.pk}'")
    address = f"{PROJECTS}summaries/{summary.pk}/"
    assert address in shown_links(page_of(operator, f"{INTEGRITY}reports/{a_report_on()}/"))
    assert ">Regenerate<" in page_of(operator, address)

    operator.post(f"{address}redo/", follow=True)

    job = HistoryJob.objects.get(state="queued")
    assert (job.reason, job.conversation_id) == ("manual", summary.conversation_id)
    assert str(job.conversation) in page_of(operator, "/w/default/runs/history-jobs/?state=queued")
    assert "1 for" in page_of(operator, "/w/default/")


def test_a_superseded_summary_leads_to_the_newer_one(past, reader):
    newer = SessionSummary.objects.get(supersedes=past.superseded_id).pk

    page = page_of(reader, f"{PROJECTS}summaries/{past.superseded_id}/")

    assert f"{PROJECTS}summaries/{newer}/" in shown_links(page)
    assert TIMELINE in shown_links(page) and f"/w/default/impact/{past.superseded_id}/" in shown_links(page)
    assert reader.get(f"{PROJECTS}summaries/ses_0/").status_code == 404
    session = SessionSummary.objects.get(pk=past.superseded_id).conversation_id
    assert TIMELINE in shown_links(page_of(reader, f"/w/default/conversations/{session}/"))


def test_a_page_ends_where_there_is_no_more_room_for_texts(reader):
    project, most = a_project("long"), RetrievalPolicy.from_settings().max_expand_tokens
    for number in range(4):
        a_session_summary(a_session(project).conversation_id, f"session {number} " + "word " * (most // 2 - 100))

    first = page_of(reader, f"{PROJECTS}timeline/?project=long")
    older = older_in(first)
    assert older is not None
    second = page_of(reader, f"{PROJECTS}timeline/{older}")

    found = [re.findall(r"session (\d) word", page) for page in (first, second)]
    assert found == [["3", "2"], ["1", "0"]] and older_in(second) is None
    assert "There is nothing older." not in second and "?project=long" in shown_links(second)
