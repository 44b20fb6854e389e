"""For every kind of finding a plan has steps that end in a clean report, or in quarantine; and back again."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db.models import F
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.models import CompactionJob, CompactionRun
from conversations.audit import Act, AuditLog
from conversations.cold_storage.archiving import archive_stretch
from conversations.errors import Invalid
from conversations.models import Quarantine
from integrity.checker import IntegrityChecker
from integrity.repairs.applying import Repairs
from integrity.repairs.repair_operation import CannotRepair
from integrity.repairs.repair_work import mended_figures
from integrity.types import PlanState, RepairPlanRecord, StepState
from retrieval.delegation.grants import Grants
from tests.conversations.ledger.ledgers import another_database, exported, imported, verified
from tests.factories import a_conversation, a_workspace
from tests.integrity.breaking import Compacted, breaking, forging, found, without_checking
from tests.integrity.breaks import BREAKS
from tests.integrity.repairing import ADMIN, a_ledger, a_plan, applied, as_ledger, everything, operations
from tests.round_trip import assert_ledgers_survive

pytestmark = pytest.mark.django_db


def a_left_job(conversation: Compacted) -> None:
    CompactionEngine.from_settings().request(conversation_id=conversation.id)
    long_ago = timezone.now() - timedelta(hours=2)
    CompactionJob.objects.update(state="leased", run_after=long_ago, leased_until=long_ago)


def a_left_run(conversation: Compacted) -> None:
    began = timezone.now() - timedelta(days=2)
    CompactionRun.objects.create(
        run_id="run_old",
        conversation_id=conversation.id,
        reason="manual",
        outcome="running",
        started_at=began,
        tokens_before=1,
        tokens_after=1,
    )


def a_run_that_does_not_add_up(conversation: Compacted) -> None:
    a_left_run(conversation)
    with without_checking("compaction_runs_add_up", "compaction_runs"):
        CompactionRun.objects.update(
            outcome="compacted",
            started_at=timezone.now(),
            finished_at=timezone.now(),
            tokens_before=100,
            tokens_after=-20,
        )


def a_left_grant(conversation: Compacted) -> None:
    Grants.from_settings().issue(
        workspace_id=a_workspace().pk, question="?", item_ids=["msg_1"], depth=1, token_cap=100, seconds=60
    )
    forging("grants", "UPDATE grants SET expires_at = now() - interval '40 days'")


def a_quarantine_of_nothing(conversation: Compacted) -> None:
    breaking(
        "INSERT INTO quarantines (conversation_id, target, reason) VALUES (%s, 'msg_1000000', 'x')", conversation.id
    )
    breaking("UPDATE conversations SET quarantined = 1 WHERE conversation_id = %s", conversation.id)


def an_altered_cold_block(conversation: Compacted) -> None:
    archive_stretch(conversation.id, after_seq=0, log=AuditLog())
    breaking("UPDATE cold_blocks SET packed = 'no block' WHERE conversation_id = %s", conversation.id)


ALSO: dict[str, Callable[[Compacted], object]] = {
    "a left job": a_left_job,
    "a left run": a_left_run,
    "a run that does not add up": a_run_that_does_not_add_up,
    "a left grant": a_left_grant,
    "a quarantine of nothing": a_quarantine_of_nothing,
    "an altered cold block": an_altered_cold_block,
    "a wrong token count": lambda conversation: breaking(
        "UPDATE messages SET token_count = 1000 WHERE message_id = %s", conversation.message_ids[5]
    ),
}
STEPS = {
    "an altered message": ["quarantine"],
    "altered metadata": ["quarantine"],
    "an altered part: tool_name = 'other'": ["quarantine"],
    "an altered entry hash": ["quarantine"],
    "a message recorded before its predecessor": ["quarantine"],
    "a wrong token count": ["quarantine", "recount"],
    "a removed message": ["quarantine", "recount"],
    "two messages in each other's place": ["quarantine", "rebuild_context"],
    "removed newest messages": ["quarantine", "recount"],
    "an altered late summary": ["quarantine", "redo_summary"],
    "a summary with the sources of another": ["quarantine"],
    "a summary that is a source of itself": ["quarantine"],
    "a wrong last_seq of a summary": ["quarantine"],
    "a summary without a source": ["relink"],
    "a summary that is left out of its lineage": ["relink"],
    "a message that is missing from the context": ["rebuild_context"],
    "a context item that has moved": ["rebuild_context"],
    "a context item that points at nothing": ["rebuild_context"],
    "a wrong total_tokens": ["recount"],
    "a wrong active_tokens": ["recount"],
    "a wrong chain head": ["recount"],
    "a left job": ["close_job"],
    "a left run": ["close_run"],
    "a run that does not add up": ["mend_run"],
    "a left grant": ["expire_grant"],
    "a quarantine of nothing": ["release"],
}
IRREVERSIBLE = {
    "a summary without a source",
    "a summary that is left out of its lineage",
    "a context item that points at nothing",
    "a run that does not add up",
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("name", "steps"), STEPS.items(), ids=STEPS)
def test_every_kind_of_finding_has_steps_that_end_well_and_can_be_undone(conversation, name, steps):
    (BREAKS | ALSO)[name](conversation)
    before = everything()
    plan = a_plan()
    assert everything() == before

    done = applied(plan)

    report = IntegrityChecker.from_settings().run()
    assert sorted(set(operations(plan)), key=operations(plan).index) == steps
    assert (done.state, {step.state for step in done.steps}) == (PlanState.APPLIED, {StepState.APPLIED})
    if "quarantine" in steps:
        assert not report.is_clean
        assert_withheld(plan, report.report_id)
    else:
        assert found(report) == {}
    assert all(step.reversible for step in plan.steps) == (name not in IRREVERSIBLE)
    after = everything()
    if name in IRREVERSIBLE:
        with pytest.raises(CannotRepair):
            Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)
        assert everything() == after
    else:
        undone = Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)
        assert undone.state is PlanState.UNDONE
        assert everything() == before


def assert_withheld(plan: RepairPlanRecord, report_id: str) -> None:
    """Whatever is found after the repair was found before, and is quarantined or follows from what is."""
    page = IntegrityChecker.from_settings().get_report(report_id=report_id, limit=1000)
    quarantined = {step.target for step in plan.steps if step.operation == "quarantine"}
    assert quarantined <= set(Quarantine.objects.filter(released_at=None).values_list("target", flat=True))
    explained = {(each.code, each.id) for each in plan.unplanned}
    planned = {(code, step.target) for step in plan.steps for code in step.codes}
    for finding in page.findings:
        gap = f"seq_{finding.conversation_id}_{finding.id.removeprefix('seq_')}"
        assert finding.is_quarantined or gap in quarantined or (finding.code, finding.id) in explained | planned, (
            finding
        )


REWRITTEN = (
    "an altered message",
    "an altered message with characters that a column cannot hold",
    "altered metadata",
    "an altered part: tool_output = 'contents'",
    "an altered author",
    "an altered late summary",
    "an altered top summary",
)
INSERTED = (
    "a removed message",
    "a removed message below a summary",
    "a removed message with a part",
    "removed newest messages",
    "an altered cold block",
    "a removed part",
)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", (*REWRITTEN, *INSERTED))
def test_what_a_ledger_has_is_put_back_as_it_was_sealed(conversation, name):
    ledger = a_ledger(conversation)
    whole = as_ledger(conversation)
    (BREAKS | ALSO)[name](conversation)
    before = everything()
    plan = a_plan(ledger)

    done = applied(plan)

    assert done.state is PlanState.APPLIED, done.outcome
    assert operations(plan)[0] == "restore_from_ledger"
    assert "quarantine" not in operations(plan)
    assert found(IntegrityChecker.from_settings().run()) == {}
    assert as_ledger(conversation) == whole
    assert [entry.act for entry in AuditLog().list_acts(conversation_id=conversation.id, act=Act.RESTORE)]
    if name in REWRITTEN:
        Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)
        assert everything() == before


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
    done = applied(a_plan())

    mended = CompactionRun.objects.get(pk=run.run_id)
    recorded = {"tokens_before": run.tokens_before, "tokens_after": run.tokens_after}
    assert done.state is PlanState.APPLIED
    assert mended.tokens_before - mended.tokens_after == run.tokens_before - run.tokens_after
    # Its summaries stand in the context, and each costs something there.
    assert mended.tokens_after > 10 * run.leaf_summaries > 0
    assert mended.details["recorded_before_repair"] == recorded
    assert_ledgers_survive()


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
