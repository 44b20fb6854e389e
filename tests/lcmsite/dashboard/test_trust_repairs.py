"""A repair plan in the browser: read by everybody, decided on by admins, done and taken back as it was said."""

from __future__ import annotations

import pytest

from conversations.scope import Scope
from integrity import models
from integrity.checker import IntegrityChecker
from integrity.types import PlanState, StepState
from lcmsite.dashboard.parts.findings import effect_of
from tests.factories import a_conversation, a_workspace
from tests.integrity.breaking import Compacted, breaking
from tests.integrity.repairing import everything
from tests.lcmsite.dashboard.trusting import (
    INTEGRITY,
    a_checker,
    a_damaged_conversation,
    a_miscounted_conversation,
    a_plan_on,
    a_report_on,
    a_worker,
    approved,
)
from tests.lcmsite.dashboard.visiting import HOSTILE, as_part, browser_of, page_of, shown_links
from tests.statements import execute


@pytest.fixture(scope="module")
def miscounted(module_rows: None) -> Compacted:
    conversation = a_miscounted_conversation()
    execute("SET CONSTRAINTS ALL DEFERRED")
    return conversation


@pytest.fixture
def path(miscounted: Compacted, db: None) -> str:
    """The page of a plan of two steps."""
    return f"{INTEGRITY}repairs/{a_plan_on(a_report_on()).repair_id}/"


def step_states() -> list[str]:
    return list(models.RepairStep.objects.order_by("ordinal").values_list("state", flat=True))


def test_each_step_shows_what_goes_what_comes_and_why(admin, path):
    page = page_of(admin, path)

    assert '<span class="line out">- cold messages: 3' in page and '<span class="line in">+ cold messages: 0' in page
    assert effect_of("recount").partition("`")[0] in page
    assert "low risk" in page and "reversible" in page
    assert "counters_are_recounts" in page


def test_everybody_reads_a_plan_and_only_admins_are_offered_to_decide(path, reader, operator, admin):
    for browser, may in ((reader, False), (operator, False), (admin, True)):
        page = page_of(browser, path)
        assert ("dmins of the workspace may" in page) != may
        assert ('name="ordinals"' in page and "Approve all 2" in page) == may
        assert ("history/" in page) == may


def test_steps_are_approved_and_refused_one_by_one_and_a_choice_that_is_none_is_told_on_the_plan(admin, path):
    for none in ({}, {"do": "approve", "ordinals": ["x", "-1", "9" * 5000]}, {"do": "approve", "ordinals": ["77"]}):
        answer = admin.post(f"{path}approval/", none)
        assert answer.status_code == 400
        assert 'role="alert"' in answer.content.decode() and "Repair plan" in answer.content.decode()
        assert step_states() == ["proposed", "proposed"]

    admin.post(f"{path}approval/", {"do": "approve", "ordinals": ["1", "2"]})
    admin.post(f"{path}approval/", {"do": "refuse", "ordinals": ["2"]})

    page = page_of(admin, path)
    assert step_states() == [StepState.APPROVED, StepState.REFUSED]
    assert "approved by user a-admin" in page and "Apply 1 step" in page


def test_plans_to_decide_on_are_on_the_overview_and_listed_by_state(admin, path):
    plans = f"{INTEGRITY}repairs/"
    waiting = f"{plans}?state=proposed"
    theirs = browser_of("admin", workspace=a_workspace("theirs"), name="tom")

    for place in ("/w/default/", INTEGRITY):
        assert waiting in shown_links(page_of(admin, place))
    assert path in shown_links(page_of(admin, waiting)) and "to decide on" not in page_of(theirs, "/w/theirs/")

    admin.post(f"{path}approval/", {"do": "all"})

    assert waiting not in shown_links(page_of(admin, "/w/default/"))
    assert "No repair plan is in this state." in page_of(admin, waiting)
    for listed in (plans, f"{plans}?state=approved", f"{plans}?state=none%20such"):
        assert path in shown_links(page_of(admin, listed))

    empty = IntegrityChecker.from_settings(Scope(a_workspace("theirs").pk))
    empty.plan_repairs(report_id=empty.run().report_id)
    assert "to decide on" not in page_of(theirs, "/w/theirs/")


def test_a_broken_promise_is_found_planned_approved_mended_and_broken_again_through_the_pages(admin, miscounted):
    broken = everything()

    piece = admin.post(f"{INTEGRITY}scans/", {"with_plan": "yes"}, headers={"HX-Request": "true"}).content.decode()
    [scan] = [piece.split('hx-get="')[1].split('"')[0]]
    waiting = as_part(admin, scan)
    a_worker().work()
    done = as_part(admin, scan)
    assert "waiting for a worker" in piece and "<html" not in piece
    assert "hx-get" in waiting and "Open the report" not in waiting and "hx-get" not in done
    [report] = [link for link in shown_links(done) if "/reports/" in link]
    [plan] = [link for link in shown_links(done) if "/repairs/" in link]
    assert plan in shown_links(page_of(admin, report))

    admin.post(f"{plan}approval/", {"do": "all"})
    applied = admin.post(f"{plan}application/", follow=True).content.decode()
    assert "The approved steps were applied." in applied and "Undo the plan" in applied
    assert IntegrityChecker.from_settings().run().is_clean
    assert everything() != broken

    undone = admin.post(f"{plan}undoing/", follow=True).content.decode()
    assert "The plan was undone" in undone and "Undo the plan" not in undone
    assert everything() == broken

    history = page_of(admin, f"{plan}history/")
    assert [history.index(f"{act} repair") for act in ("undo", "apply", "approve")] == sorted(
        history.index(f"{act} repair") for act in ("undo", "apply", "approve")
    )
    assert history.count("user a-admin") == 3 and "1, 2" in history


def test_a_step_that_is_stale_is_explained_and_a_new_check_is_offered(admin, path, miscounted):
    admin.post(f"{path}approval/", {"do": "all"})
    breaking("UPDATE conversations SET total_tokens = total_tokens + 1 WHERE conversation_id = %s", miscounted.id)
    before = everything()

    page = admin.post(f"{path}application/", follow=True).content.decode()

    assert everything() == before
    assert "Nothing was changed." in page and "in step 2" in page
    assert "The data has changed since the plan was made" in page
    assert "Check again and make a new plan" in page and f'name="conversation_id" value="{miscounted.id}"' in page
    assert "Approve all" not in page


def test_a_repair_that_was_rolled_back_says_why(admin, path):
    for outcome, why in (
        ({"added": [{"code": "ordinals_are_unique", "id": "conv_1", "detail": HOSTILE}]}, "ordinals_are_unique"),
        ({"why": "The database refused it: DataError."}, "The database refused it: DataError."),
    ):
        models.RepairPlan.objects.update(state=PlanState.REFUSED, outcome=outcome)
        page = page_of(admin, path)
        assert why in page and HOSTILE not in page
    assert "No audit entries yet" in page_of(admin, f"{path}history/")


def test_what_matters_has_to_be_typed(admin, miscounted):
    breaking("UPDATE conversations SET next_seq = next_seq + 2 WHERE conversation_id = %s", miscounted.id)
    plan = a_plan_on(a_report_on())
    path = f"{INTEGRITY}repairs/{plan.repair_id}/"
    models.RepairStep.objects.update(risk="high")
    approved(plan)
    words = f"apply {len(plan.steps)} steps"
    before = everything()

    page = page_of(admin, path)
    answer = admin.post(f"{path}application/", {"confirmation": "yes"})

    assert f"<code>{words}</code>" in page
    assert answer.status_code == 400 and "Nothing was changed" in answer.content.decode()
    assert everything() == before and set(step_states()) == {"approved"}

    done = admin.post(f"{path}application/", {"confirmation": f" {words} "})
    assert done.status_code == 302 and "approved" not in step_states()


def test_what_cannot_be_taken_back_offers_no_undoing(admin, path):
    admin.post(f"{path}approval/", {"do": "all"})
    admin.post(f"{path}application/")
    models.RepairStep.objects.filter(ordinal=2).update(reversible=False)

    page = page_of(admin, path)

    assert "This cannot be undone: step 2" in page and "Undo the plan" not in page


def test_a_damaged_text_is_withheld_by_a_step_and_the_rest_is_left_to_a_person(admin):
    conversation = a_damaged_conversation()
    plan = a_plan_on(a_report_on(conversation))
    path = f"{INTEGRITY}repairs/{plan.repair_id}/"

    page = page_of(admin, path)
    admin.post(f"{path}approval/", {"do": "all"})
    admin.post(f"{path}application/")

    assert "medium risk" in page and effect_of("quarantine").partition("`")[0] in page and HOSTILE not in page
    again = page_of(admin, f"{INTEGRITY}repairs/{a_plan_on(a_report_on(conversation)).repair_id}/")
    assert "Not repaired automatically" in again and "quarantined already" in again
    assert conversation.message(5) in again


def test_many_steps_are_shown_a_page_at_a_time_and_approved_at_once(admin, miscounted):
    sound = a_checker().run(conversation_id=a_conversation("nothing is wrong").conversation_id)
    assert "No step can repair" in page_of(admin, f"{INTEGRITY}repairs/{a_plan_on(sound.report_id).repair_id}/")
    for _ in range(12):
        a_conversation("one", "two")
    breaking("UPDATE conversations SET total_tokens = total_tokens + 7, cold_messages = cold_messages + 3")
    path = f"{INTEGRITY}repairs/{a_plan_on(a_report_on()).repair_id}/"

    pages = [page_of(admin, f"{path}?page={n}") for n in ("1", "2", "999")]
    admin.post(f"{path}approval/", {"do": "all"})

    assert [page.count('name="ordinals"') for page in pages] == [25, 3, 3]
    assert "Page 2 of 2" in pages[1]
    assert step_states() == ["approved"] * 28
