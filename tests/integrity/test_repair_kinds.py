"""For every kind of finding a plan has steps that end in a clean report, or in quarantine; and back again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from django.utils import timezone

from compaction.engine import CompactionEngine
from compaction.models import CompactionJob, CompactionRun
from conversations.audit import Act, AuditLog
from conversations.cold_storage.archiving import archive_stretch
from conversations.models import Quarantine
from integrity.checker import IntegrityChecker
from integrity.repairs.applying import Repairs
from integrity.repairs.repair_operation import CannotRepair
from integrity.types import PlanState, RepairPlanRecord, StepState
from retrieval.delegation.grants import Grants
from tests.factories import a_workspace
from tests.integrity.breaking import Compacted, breaking, forging, found, without_checking
from tests.integrity.repairing import (
    ADMIN,
    Break,
    a_ledger,
    a_plan,
    applied,
    as_ledger,
    corrupting,
    everything,
    operations,
)


@dataclass(frozen=True)
class Case:
    """A way to break it, the steps against it, and whether the report is clean afterwards."""

    broken: Break
    steps: list[str]
    is_clean: bool = True
    is_reversible: bool = True


def sql(statement: str, seq: int | None = None, summary: str = "") -> Break:
    def broken(conversation: Compacted) -> None:
        value = conversation.message_ids[seq] if seq else getattr(conversation, summary).summary_id
        breaking(statement, value)

    return broken


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
    with without_checking("compaction_runs_add_up", "compaction_runs"):
        CompactionRun.objects.create(
            run_id="run_old",
            conversation_id=conversation.id,
            reason="manual",
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


WITHHELD = {"is_clean": False}
CASES = {
    "altered text": Case(corrupting("flipped byte", 29), ["quarantine"], **WITHHELD),
    "altered metadata": Case(
        sql('UPDATE messages SET metadata = \'{"by": "Eve"}\' WHERE message_id = %s', 3), ["quarantine"], **WITHHELD
    ),
    "altered part": Case(
        sql("UPDATE message_parts SET tool_name = 'other' WHERE message_id = %s", 38), ["quarantine"], **WITHHELD
    ),
    "altered seal": Case(
        sql("UPDATE messages SET entry_hash = sha256('x') WHERE message_id = %s", 30), ["quarantine"], **WITHHELD
    ),
    "altered time": Case(
        sql("UPDATE messages SET recorded_at = recorded_at - interval '1 day' WHERE message_id = %s", 30),
        ["quarantine"],
        **WITHHELD,
    ),
    "wrong token count": Case(
        sql("UPDATE messages SET token_count = 1000 WHERE message_id = %s", 5), ["quarantine", "recount"], **WITHHELD
    ),
    "dropped row": Case(corrupting("dropped row", 29), ["quarantine", "recount"], **WITHHELD),
    "swapped seq": Case(corrupting("swapped seq", 29), ["quarantine", "rebuild_context"], **WITHHELD),
    "cut tail": Case(corrupting("cut tail", 0), ["quarantine", "recount"], **WITHHELD),
    "altered summary": Case(corrupting("altered summary", 5), ["quarantine", "redo_summary"], **WITHHELD),
    "re-parented summary": Case(corrupting("re-parented summary"), ["quarantine"], **WITHHELD),
    "cycle": Case(corrupting("cycle"), ["quarantine"], **WITHHELD),
    "wrong range": Case(
        sql("UPDATE summaries SET last_seq = 29 WHERE summary_id = %s", summary="late"), ["quarantine"], **WITHHELD
    ),
    "lost links": Case(
        sql("DELETE FROM summary_messages WHERE summary_id = %s", summary="late"),
        ["relink"],
        is_reversible=False,
    ),
    "lost lineage": Case(
        sql("DELETE FROM summary_parents WHERE summary_id = %s", summary="top"),
        ["relink"],
        is_reversible=False,
    ),
    "stolen context item": Case(corrupting("stolen context item", 2), ["rebuild_context"]),
    "moved context item": Case(
        sql("UPDATE context_items SET ordinal = 100 WHERE summary_id = %s", summary="top"), ["rebuild_context"]
    ),
    "context item of nothing": Case(
        sql("UPDATE context_items SET message_id = 10^12 WHERE message_id = %s", 30),
        ["rebuild_context"],
        is_reversible=False,
    ),
    "wrong counter": Case(corrupting("wrong counter", 0), ["recount"]),
    "wrong count of the context": Case(corrupting("wrong counter", 2), ["recount"]),
    "wrong chain head": Case(
        lambda conversation: breaking(
            "UPDATE conversations SET chain_head = sha256('x') WHERE conversation_id = %s", conversation.id
        ),
        ["recount"],
    ),
    "left job": Case(a_left_job, ["close_job"]),
    "left run": Case(a_left_run, ["close_run"]),
    "run that does not add up": Case(a_run_that_does_not_add_up, ["mend_run"], is_reversible=False),
    "left grant": Case(a_left_grant, ["expire_grant"]),
    "quarantine of nothing": Case(a_quarantine_of_nothing, ["release"]),
}


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_finding_has_steps_that_end_well_and_can_be_undone(conversation, name):
    case = CASES[name]
    case.broken(conversation)
    before = everything()
    plan = a_plan()
    assert everything() == before

    done = applied(plan)

    report = IntegrityChecker.from_settings().run()
    assert sorted(set(operations(plan)), key=operations(plan).index) == case.steps
    assert (done.state, {step.state for step in done.steps}) == (PlanState.APPLIED, {StepState.APPLIED})
    if case.is_clean:
        assert found(report) == {}
    else:
        assert not report.is_clean
        assert_withheld(plan, report.report_id)
    if case.is_reversible:
        undone = Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)
        assert undone.state is PlanState.UNDONE
        assert everything() == before
    else:
        assert not all(step.reversible for step in plan.steps)
        after = everything()
        with pytest.raises(CannotRepair):
            Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)
        assert everything() == after


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


def an_altered_cold_block(conversation: Compacted) -> None:
    archive_stretch(conversation.id, after_seq=0, log=AuditLog())
    breaking("UPDATE cold_blocks SET packed = 'no block' WHERE conversation_id = %s", conversation.id)


RESTORABLE = {
    "altered text": (corrupting("flipped byte", 29), True),
    "altered text with characters that a column cannot hold": (
        sql("UPDATE messages SET content = 'x', exact = NULL WHERE message_id = %s", 2),
        True,
    ),
    "altered metadata": (sql('UPDATE messages SET metadata = \'{"by": "Eve"}\' WHERE message_id = %s', 3), True),
    "altered part": (sql("UPDATE message_parts SET tool_output = 'x' WHERE message_id = %s", 38), True),
    "altered author": (sql("UPDATE messages SET author = 'bob' WHERE message_id = %s", 2), True),
    "altered summary": (corrupting("altered summary", 5), True),
    "altered summary of summaries": (corrupting("altered summary", 4), True),
    "dropped row": (corrupting("dropped row", 29), False),
    "dropped row below a summary": (corrupting("dropped row", 14), False),
    "dropped row with a part": (corrupting("dropped row", 37), False),
    "cut tail": (corrupting("cut tail", 6), False),
    "altered cold block": (an_altered_cold_block, False),
    "dropped part": (sql("DELETE FROM message_parts WHERE message_id = %s", 37), False),
}


@pytest.mark.parametrize("name", RESTORABLE)
def test_what_a_ledger_has_is_put_back_as_it_was_sealed(conversation, name):
    broken, is_reversible = RESTORABLE[name]
    ledger = a_ledger(conversation)
    whole = as_ledger(conversation)
    broken(conversation)
    before = everything()
    plan = a_plan(ledger)

    done = applied(plan)

    assert done.state is PlanState.APPLIED, done.outcome
    assert operations(plan)[0] == "restore_from_ledger"
    assert "quarantine" not in operations(plan)
    assert found(IntegrityChecker.from_settings().run()) == {}
    assert as_ledger(conversation) == whole
    assert [entry.act for entry in AuditLog().list_acts(conversation_id=conversation.id, act=Act.RESTORE)]
    if is_reversible:
        Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)
        assert everything() == before
