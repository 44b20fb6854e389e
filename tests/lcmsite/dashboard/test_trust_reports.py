"""Reports in the browser: what was found, what it means, where it is; and a check at a click."""

from __future__ import annotations

import io
import re

import pytest
from django.utils.html import escape

from compaction.types import JobState
from integrity import models
from lcmsite.dashboard.parts.findings import meaning_of
from tests.conversations.ledger.verifier import verify
from tests.factories import a_conversation, a_workspace
from tests.integrity.breaking import Compacted, a_compacted_conversation, breaking
from tests.lcmsite.dashboard.trusting import INTEGRITY, a_checker, a_damaged_conversation, a_report_on, a_worker
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part, browser_of, page_of, shown_links


@pytest.fixture
def damaged(db: None) -> Compacted:
    return a_damaged_conversation()


def test_a_check_without_a_script_ends_in_a_clean_report(reader):
    empty = page_of(reader, INTEGRITY)
    a_compacted_conversation()
    waiting = reader.post(f"{INTEGRITY}scans/", follow=True).content.decode()
    a_worker().work()
    [report_id] = models.IntegrityReport.objects.values_list("pk", flat=True)

    page = page_of(reader, f"{INTEGRITY}reports/{report_id}/")

    assert "No checks yet" in empty and "Check now" in empty
    assert "waiting for a worker" in waiting and "<html" in waiting
    assert "Every invariant holds" in page and "40 messages" in page
    assert page.count('<span class="badge badge-good">holds</span>') > 20


def test_it_is_said_when_all_of_the_workspace_was_last_looked_through(reader):
    conversation_id = a_conversation("one").conversation_id
    a_checker().run(conversation_id=conversation_id)
    a_checker().run(extent="incremental")
    before = page_of(reader, INTEGRITY)
    whole = a_checker().run().report_id
    newer = a_checker().run(conversation_id=conversation_id).report_id

    after = page_of(reader, INTEGRITY)

    assert "no full check yet" in before
    told = after[after.index("all 1 message checked") :]
    assert told.index(whole) < told.index(newer)


def test_findings_are_grouped_gravest_first_explained_and_lead_to_where_they_are(reader, damaged):
    breaking("UPDATE conversations SET total_tokens = 1 WHERE conversation_id = %s", damaged.id)
    breaking("DELETE FROM context_items WHERE conversation_id = %s AND summary_id IS NOT NULL", damaged.id)

    page = page_of(reader, f"{INTEGRITY}reports/{a_report_on()}/")

    codes = ("contents_match_their_hashes", "context_is_what_lineage_says", "counters_are_recounts")
    places = [page.index(f'id="of-{code}"') for code in codes]
    assert places == sorted(places) and "critical" in page
    assert escape(meaning_of("contents_match_their_hashes")).partition("`")[0] in page
    link = f"{INTEGRITY}place/?id={damaged.message(5)}"
    assert link in shown_links(page)
    there = reader.get(link)
    assert there["Location"] == f"/w/default/conversations/{damaged.id}/?seq=5"
    assert HOSTILE not in page_of(reader, there["Location"]) + page


def test_listings_are_cut_counts_are_not_and_all_places_can_be_paged_through(reader):
    conversation = a_conversation(*(f"message {n}" for n in range(150)))
    breaking("UPDATE messages SET content = 'x' WHERE conversation_id = %s", conversation.conversation_id)
    path = f"{INTEGRITY}reports/{a_report_on()}/"
    found = re.findall(r"place/\?id=(msg_\d+)", page_of(reader, f"{path}?code=contents_match_their_hashes"))
    browser_of("admin").post("/w/default/quarantine/new/", {"id": found[0], "reason": "not what was said"})

    page = page_of(reader, path)
    first = page_of(reader, f"{path}?code=contents_match_their_hashes")
    [link] = [link for link in shown_links(first) if "after=" in link]
    second = page_of(reader, path + link)

    assert "The first 20 of 150" in page
    assert "<b>150</b>" in first
    assert [each.count('class="where"') for each in (page, first, second)][1:] == [100, 50]
    assert [each.count("quarantined</span>") for each in (first, second)] == [1, 0]
    unknown = reader.get(path, {"code": HOSTILE})
    assert unknown.status_code == 404 and HOSTILE not in unknown.content.decode()


def test_conversations_that_could_not_be_looked_at_are_named(reader):
    conversation_id = a_conversation("one").conversation_id
    report_id = a_report_on()
    models.IntegrityReport.objects.filter(pk=report_id).update(unchecked=[conversation_id], is_clean=False)

    page = page_of(reader, f"{INTEGRITY}reports/{report_id}/")

    assert "skipped" in page and "incomplete" in page
    assert "Every invariant holds" not in page


def test_a_report_that_is_not_finished_says_so_and_offers_no_plan(operator, damaged):
    report_id = a_report_on()
    models.IntegrityReport.objects.filter(pk=report_id).update(finished_at=None)

    page = page_of(operator, f"{INTEGRITY}reports/{report_id}/")
    answer = operator.post(f"{INTEGRITY}reports/{report_id}/repairs/")

    assert "running" in page and "Plan repairs" not in page
    assert answer.status_code == 409 and "is still running" in answer.content.decode()


def test_what_is_not_there_is_told(reader):
    for path in ("reports/report_none/", "reports/%3Cb%3E/", "scans/99/", "repairs/repair_none/", "place/?id=msg_999"):
        answer = reader.get(INTEGRITY + path)
        assert answer.status_code == 404
        assert "that you may see" in answer.content.decode() or "There is no message" in answer.content.decode()

    for given, status in (
        ({"conversation_id": "999"}, 404),
        ({"conversation_id": "all of it"}, 400),
        ({"extent": HOSTILE}, 400),
    ):
        answer = reader.post(f"{INTEGRITY}scans/", given)
        assert answer.status_code == status and HOSTILE not in answer.content.decode()
    assert not models.IntegrityScan.objects.exists()


@pytest.mark.thorough
def test_how_far_a_check_is_can_be_seen(reader, damaged):
    a_conversation("another")
    reader.post(f"{INTEGRITY}scans/")
    scan = models.IntegrityScan.objects.get()
    report = models.IntegrityReport.objects.create(
        report_id="report_half", workspace=a_workspace(), mode="full", started_at=scan.requested_at,
        conversations_checked=1, messages_checked=40,
    )  # fmt: skip
    models.IntegrityScan.objects.filter(pk=scan.pk).update(state=JobState.LEASED, report=report)
    for _ in range(21):
        a_report_on()

    piece = as_part(reader, f"{INTEGRITY}scans/{scan.pk}/")

    assert '<progress max="2" value="1"' in piece and "1 of 2 conversations" in " ".join(piece.split())
    assert "running" in piece


def test_a_check_that_failed_says_what_to_do(reader):
    reader.post(f"{INTEGRITY}scans/")
    models.IntegrityScan.objects.update(state=JobState.FAILED, attempts=8, finished_at="2026-01-01T00:00Z")

    page = page_of(reader, f"{INTEGRITY}scans/{models.IntegrityScan.objects.get().pk}/")

    assert "The check failed 8 times" in page and "start another check" in page


def test_one_conversation_is_checked_alone_from_its_own_page(reader, damaged):
    path = f"/w/default/conversations/{damaged.id}/trust/"
    empty = page_of(reader, path)

    reader.post(f"{INTEGRITY}scans/", {"conversation_id": damaged.id})
    a_worker().work()
    page = page_of(reader, path)

    assert "No checks of this conversation alone" in empty
    assert "finding" in page and f'value="{damaged.id}"' in page


def test_only_who_may_plan_has_a_check_plan(reader, operator):
    reader.post(f"{INTEGRITY}scans/", {"with_plan": "yes"})
    operator.post(f"{INTEGRITY}scans/", {"with_plan": "yes", "extent": "incremental"})

    assert list(models.IntegrityScan.objects.order_by("pk").values_list("with_plan", flat=True)) == [False, True]
    assert "plan repairs" not in page_of(reader, INTEGRITY) and "plan repairs" in page_of(operator, INTEGRITY)


def test_a_plan_is_offered_to_who_may_make_one(reader, operator, damaged):
    path = f"{INTEGRITY}reports/{a_report_on()}/"

    assert "Plan repairs" not in page_of(reader, path) and "Operators and admins may" in page_of(reader, path)
    assert "Plan repairs" in page_of(operator, path)
    assert reader.post(f"{path}repairs/").status_code == 403 and not models.RepairPlan.objects.exists()

    assert operator.post(f"{path}repairs/", {"ledger_file_id": "file_none"}).status_code == 404
    made = operator.post(f"{path}repairs/")
    assert made["Location"] == f"{INTEGRITY}repairs/{models.RepairPlan.objects.get().pk}/"
    assert made["Location"] in shown_links(page_of(reader, path))


def test_a_conversation_is_taken_along_as_a_ledger_that_a_stranger_verifies(reader):
    id = a_compacted_conversation().id
    page = page_of(reader, f"/w/default/conversations/{id}/trust/")
    path = f"/w/default/conversations/{id}/ledger/"

    answer = reader.get(path)
    ledger = b"".join(answer)

    assert f'href="{path}"' in page
    assert answer["Content-Disposition"] == f'attachment; filename="conversation-{id}.jsonl"'
    assert f'"line_hash":"{verify(io.BytesIO(ledger))}"'.encode() in ledger.splitlines()[-1]
