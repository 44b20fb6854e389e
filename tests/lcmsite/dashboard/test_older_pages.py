"""Long lists in the dashboard: each page goes on behind the one before, and what was asked for stays asked."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction
from django.utils import timezone

from compaction.models import CompactionRun
from conversations.audit import Act, AuditLog
from conversations.store.cursors import write_cursor
from lcmsite.dashboard.pages import inspector, report_pages, retention_pages, run_pages
from lcmsite.dashboard.visit import ON_A_PAGE
from tests.factories import a_conversation
from tests.lcmsite.dashboard.visiting import older_in, page_of, shown_links
from tests.lcmsite.test_lists import a_grant, a_plan, a_quarantine, a_receipt, a_report, scope

pytestmark = pytest.mark.django_db


@pytest.fixture
def conversation_id(db: None) -> int:
    return a_conversation("hello", "hi").conversation_id


def a_run(conversation_id: int, number: int) -> str:
    now = timezone.now()
    run = CompactionRun.objects.create(
        run_id=f"run_{number:016x}", conversation_id=conversation_id, reason="threshold", outcome="skipped",
        started_at=now, finished_at=now, tokens_before=9, tokens_after=9,
    )  # fmt: skip
    return str(run.run_id)


def an_act(conversation_id: int, number: int) -> str:
    target = f"target {number:03}"
    with transaction.atomic():
        AuditLog(scope()).record(Act.THAW, conversation_id=conversation_id, target=target)
    return target


PAGES: list[tuple[str, Callable[[int, int], str], int]] = [
    ("quarantine/?released=yes", a_quarantine, ON_A_PAGE),
    ("grants/", a_grant, ON_A_PAGE),
    ("conversations/{}/plans/", a_plan, run_pages.OF_A_CONVERSATION),
    ("conversations/{}/context/?budget=900", a_receipt, inspector.KEPT),
    ("conversations/{}/trust/", a_report, retention_pages.ON_A_PAGE),
    ("integrity/", a_report, report_pages.ON_A_PAGE),
    ("runs/?outcome=skipped", a_run, ON_A_PAGE),
    ("audit/?act=thaw", an_act, ON_A_PAGE),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("path", "another", "most"), PAGES, ids=[path for path, _, _ in PAGES])
def test_an_older_page_is_what_the_newer_one_left_out(admin, conversation_id, path, another, most):
    address = f"/w/default/{path.format(conversation_id)}"
    made = [another(conversation_id, number) for number in range(most + 1)]

    newest = admin.get(address).content.decode()
    late = another(conversation_id, most + 1)
    path, _, filters = address.partition("?")
    onward = older_in(newest)
    older = admin.get(path + onward).content.decode()

    assert [name for name in made if name in newest] == made[1:]
    assert [name for name in (*made, late) if name in older] == made[:1]
    # What was chosen stays chosen.
    assert onward.startswith(f"?{filters}&cursor=" if filters else "?cursor=")
    assert f"?{filters}" in shown_links(older) and older_in(older) is None


def test_an_unknown_cursor_is_refused(admin):
    for cursor in ("x", "report_0000000000000000", "\0", write_cursor(["report_0000000000000000"], of="another")):
        assert admin.get("/w/default/integrity/", {"cursor": cursor}).status_code == 400


def test_of_one_conversation_there_is_what_is_withheld_of_it(admin, conversation_id):
    other = a_conversation("another").conversation_id
    ours, theirs = a_quarantine(conversation_id, 1), a_quarantine(other, 2)

    trust = admin.get(f"/w/default/conversations/{conversation_id}/trust/").content.decode()
    [link] = [link for link in shown_links(trust) if "quarantine/?" in link]
    page = admin.get(link).content.decode()

    assert ours in page and theirs not in page
    assert f"?released=yes&conversation_id={conversation_id}" in shown_links(page) and "?" in shown_links(page)
    assert admin.get("/w/default/quarantine/?conversation_id=987654321").status_code == 404


EMPTY = {
    "conversations/": "lcm import FILE",
    "files/": "Agents store large content as files",
    "grants/": "No questions delegated yet",
    "runs/": "No runs yet.",
    "runs/jobs/": "No jobs yet.",
    "search/": "Search every message",
    "erasures/": "Nothing has been erased",
    "retention/storage/": "No conversations yet",
}


def test_an_empty_list_says_what_belongs_there(admin):
    for path, words in EMPTY.items():
        assert words in page_of(admin, f"/w/default/{path}")
