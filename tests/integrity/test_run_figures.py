"""Runs of an earlier version whose figures do not add up are found, named by the ledger, and set right."""

from __future__ import annotations

import pytest
from django.db.models import F

from compaction.engine import CompactionEngine
from compaction.models import CompactionRun
from conversations.errors import Invalid
from integrity.checker import IntegrityChecker
from integrity.repairs.applying import Repairs
from integrity.repairs.repair_operation import CannotRepair
from integrity.repairs.repair_work import mended_figures
from integrity.types import PlanState
from tests.conversations.ledger.ledgers import another_database, exported, imported, verified
from tests.factories import a_conversation
from tests.integrity.breaking import found, without_checking
from tests.integrity.repairing import ADMIN, a_plan, applied, operations
from tests.round_trip import assert_ledgers_survive

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> CompactionRun:
    """A run as an earlier version recorded it when many messages came in while it began."""
    conversation_id = a_conversation(*(f"We set port {n} for service-{n}. " * 12 for n in range(60))).conversation_id
    result = CompactionEngine.from_settings().compact(conversation_id=conversation_id)
    with without_checking("compaction_runs_add_up", "compaction_runs"):
        CompactionRun.objects.filter(pk=result.run_id).update(
            tokens_before=F("tokens_before") - result.tokens_after - 100, tokens_after=-100
        )
    return CompactionRun.objects.get(pk=result.run_id)


def test_a_run_that_does_not_add_up_is_found_and_the_ledger_names_it(run, tmp_path):
    report = IntegrityChecker.from_settings().run()
    ledger = exported(run.conversation_id)

    assert found(report) == {"runs_add_up": [run.run_id]}
    [finding] = verified(ledger).findings
    assert finding.code == "run_does_not_add_up"
    assert run.run_id in finding.detail
    another_database()
    with pytest.raises(Invalid, match=r"nothing was imported.*\[run_does_not_add_up\]"):
        imported(ledger, tmp_path)


def test_a_repaired_run_keeps_what_it_saved_and_its_ledger_survives(run):
    plan = a_plan()

    done = applied(plan)

    mended = CompactionRun.objects.get(pk=run.run_id)
    summaries = run.leaf_summaries
    assert (operations(plan), done.state, done.steps[0].reversible) == (["mend_run"], PlanState.APPLIED, False)
    assert found(IntegrityChecker.from_settings().run()) == {}
    assert mended.tokens_before - mended.tokens_after == run.tokens_before - run.tokens_after
    # Its summaries stand in the context, and each costs something there.
    assert mended.tokens_after > 10 * summaries > 0
    assert mended.details["recorded_before_repair"] == {
        "tokens_before": run.tokens_before,
        "tokens_after": run.tokens_after,
    }
    assert_ledgers_survive()


def test_a_repaired_run_is_not_made_wrong_again(run):
    plan = a_plan()
    applied(plan)

    with pytest.raises(CannotRepair, match="details keep them"):
        Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)

    assert found(IntegrityChecker.from_settings().run()) == {}


@pytest.mark.parametrize(
    ("before", "after", "left", "may_grow", "mended"),
    [
        (100, -20, 0, False, (120, 0)),
        (100, -20, 30, False, (150, 30)),
        (10, 40, 0, False, (40, 40)),
        (-5, -7, 0, False, (2, 0)),
        (-5, 10, 0, True, (0, 15)),
    ],
)
def test_mended_figures_keep_the_difference_where_it_can_be_right(before, after, left, may_grow, mended):
    assert mended_figures(before, after, at_least=left, may_grow=may_grow) == mended
