"""What a person approves is done, provably for the better, or not at all; and can be taken back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compaction.run import compaction_lock
from conversations.audit import Act, AuditLog
from conversations.errors import Conflict, ConversationBusy, Invalid, NotFound
from conversations.files.large_files import LargeFileService
from conversations.models import Conversation
from conversations.scope import Scope
from integrity import models
from integrity.checker import IntegrityChecker
from integrity.repairs.applying import RepairOvertaken, Repairs
from integrity.repairs.quarantines import Quarantines
from integrity.repairs.repair_operation import Operation, Values
from integrity.repairs.repair_planning import Step
from integrity.repairs.repair_plans import OPERATIONS
from integrity.retention.erasure import Erasures
from integrity.types import PlanState, RepairPlanRecord, StepState
from tests.compacting import another_session_compacts
from tests.factories import a_conversation, a_workspace, say
from tests.integrity.breaking import Compacted, a_compacted_conversation, breaking, checked
from tests.integrity.breaks import BREAKS
from tests.integrity.erasing import erased
from tests.integrity.repairing import (
    ADMIN,
    a_ledger,
    a_plan,
    applied,
    approved,
    as_ledger,
    everything,
    operations,
    stored,
)


@pytest.fixture
def plan(conversation: Compacted) -> RepairPlanRecord:
    """A plan with two steps: two counters are wrong."""
    BREAKS["a wrong total_tokens"](conversation)
    BREAKS["a wrong number of cold_messages"](conversation)
    return a_plan()


def test_a_plan_is_approved_applied_and_undone_once_and_in_this_order(plan):
    repairs, before = Repairs(ADMIN), everything()

    with pytest.raises(Invalid, match="has no step 3"):
        repairs.approve_steps(repair_id=plan.repair_id, ordinals=[1, 3])
    with pytest.raises(Invalid, match="both approved and refused"):
        repairs.approve_steps(repair_id=plan.repair_id, ordinals=[1], refused=[1])
    with pytest.raises(Conflict, match="is proposed"):
        repairs.apply_plan(repair_id=plan.repair_id)
    assert everything() == before
    applied(plan)
    with pytest.raises(Conflict, match="is applied"):
        repairs.apply_plan(repair_id=plan.repair_id)
    repairs.undo_plan(repair_id=plan.repair_id)
    with pytest.raises(Conflict, match="is undone"):
        repairs.undo_plan(repair_id=plan.repair_id)
    with pytest.raises(Conflict, match="is undone"):
        repairs.approve_steps(repair_id=plan.repair_id, ordinals=[1])
    assert everything() == before


def test_only_the_approved_steps_are_carried_out(plan):
    Repairs(ADMIN).approve_steps(repair_id=plan.repair_id, ordinals=[1], refused=[2])
    done = Repairs(ADMIN).apply_plan(repair_id=plan.repair_id)

    assert [step.target for step in plan.steps] == ["cold_messages", "total_tokens"]
    assert [step.state for step in done.steps] == [StepState.APPLIED, StepState.REFUSED]
    assert [step.approved_by for step in done.steps] == ["key 7", ""]
    assert checked() == {"counters_are_recounts": ["total_tokens"]}


def test_a_step_that_was_made_for_something_else_is_stale_and_nothing_is_done(conversation, plan):
    approved(plan)
    breaking("UPDATE conversations SET total_tokens = total_tokens + 1 WHERE conversation_id = %s", conversation.id)
    before = everything()

    done = Repairs(ADMIN).apply_plan(repair_id=plan.repair_id)

    assert (done.state, done.outcome) == (PlanState.REFUSED, {"stale": [2]})
    assert [step.state for step in done.steps] == [StepState.APPROVED, StepState.STALE]
    assert everything() == before


def test_a_repair_that_would_make_things_worse_is_rolled_back_and_says_why(conversation, plan, monkeypatch):
    approved(plan)
    before = everything()
    recount = OPERATIONS[Step.RECOUNT]
    apply = type(recount).apply

    def clumsy(self: Operation, step: models.RepairStep, log: AuditLog) -> Values:
        breaking("DELETE FROM context_items WHERE message_id = %s", conversation.message_ids[30])
        return apply(self, step, log)

    monkeypatch.setattr(type(recount), "apply", clumsy)
    done = Repairs(ADMIN).apply_plan(repair_id=plan.repair_id)

    assert done.state is PlanState.REFUSED
    assert {each["code"] for each in done.outcome["added"]} >= {"messages_are_reachable_once"}
    assert everything() == before


def test_a_step_that_is_approved_while_others_begin_waits_for_the_lock_of_its_conversation(plan, monkeypatch):
    another = a_conversation("one").conversation_id
    breaking("UPDATE conversations SET total_tokens = 0 WHERE conversation_id = %s", another)
    plan = a_plan()
    Repairs(ADMIN).approve_steps(repair_id=plan.repair_id, ordinals=[1])

    def approved_and_locked(conversation_id):
        approved(plan)
        return compaction_lock(conversation_id)

    monkeypatch.setattr("integrity.repairs.applying.compaction_lock", approved_and_locked)

    with pytest.raises(Conflict, match="approved at this moment"):
        Repairs(ADMIN).apply_plan(repair_id=plan.repair_id)
    assert applied(plan).state is PlanState.APPLIED


def test_a_repair_waits_for_no_compaction(conversation, plan):
    approved(plan)

    with another_session_compacts(conversation.id), pytest.raises(ConversationBusy):
        Repairs(ADMIN).apply_plan(repair_id=plan.repair_id)


@pytest.mark.parametrize("change", [lambda id: say(id, "more"), lambda id: erased(Erasures.from_settings(ADMIN), id)])
def test_what_has_changed_since_is_not_undone(conversation, change):
    BREAKS["a message that is missing from the context"](conversation)
    plan = applied(a_plan())
    change(conversation.id)
    before = everything()

    with pytest.raises(RepairOvertaken):
        Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)

    assert everything() == before


def test_every_deed_is_in_the_audit_log_with_who_did_it(conversation):
    BREAKS["an altered message"](conversation)
    plan = applied(a_plan())
    Repairs(ADMIN).undo_plan(repair_id=plan.repair_id)

    acts = AuditLog(Scope(a_workspace().pk)).list_acts(conversation_id=conversation.id)

    assert [(entry.act, entry.actor) for entry in reversed(acts)] == [
        (act, "key 7") for act in (Act.APPROVE_REPAIR, Act.QUARANTINE, Act.APPLY_REPAIR, Act.RELEASE, Act.UNDO_REPAIR)
    ]


def test_a_ledger_of_other_messages_is_not_put_back_and_another_file_is_refused(conversation):
    other = a_ledger(a_compacted_conversation())
    file = LargeFileService.from_settings().store(conversation_id=conversation.id, content=b"a,b\n1,2\n")
    BREAKS["an altered message"](conversation)

    assert operations(a_plan(other)) == ["quarantine"]
    with pytest.raises(Invalid, match="is not a ledger"):
        a_plan(file.file_id)


def test_a_line_of_a_ledger_that_was_changed_is_not_put_back(conversation):
    lines = [json.loads(line) for line in as_ledger(conversation).splitlines()]
    [message] = [line for line in lines if line["type"] == "message" and line["seq"] == 38]
    BREAKS["an altered part: tool_output = 'contents'"](conversation)

    def planned(place: dict[str, Any], **changed: Any) -> list[str]:
        original = dict(place)
        place.update(changed)
        file = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        place.update(original)
        return operations(a_plan(stored(file)))

    assert planned(message) == ["restore_from_ledger"]
    assert planned(message["parts"][0], tool_output="other") == ["quarantine"]
    for changed in ({"content": "other"}, {"metadata": {"a": 1}}, {"author": "eve"}, {"token_counter": "abacus"}):
        assert planned(message, **changed) == ["quarantine"], changed


def test_a_plan_is_a_secret_of_its_workspace(plan):
    models.IntegrityReport.objects.update(workspace=a_workspace())
    stranger = Repairs(Scope(a_workspace("another").pk))

    for ask in (stranger.get_plan, stranger.apply_plan, stranger.undo_plan):
        with pytest.raises(NotFound):
            ask(repair_id=plan.repair_id)
    for asked in ({"report_id": plan.report_id}, {"before_plan": plan.repair_id}):
        with pytest.raises(NotFound):
            stranger.list_plans(**asked)


def test_plans_are_listed_newest_first_in_figures(plan):
    first, second = plan, a_plan()
    repairs = Repairs(ADMIN)
    repairs.approve_steps(repair_id=second.repair_id, ordinals=[1])

    listed = repairs.list_plans()

    assert [each.repair_id for each in listed] == [second.repair_id, first.repair_id]
    assert [(each.step_count, each.proposed_steps, each.unplanned_count) for each in listed] == [(2, 1, 0), (2, 2, 0)]
    assert repairs.list_plans(limit=1, before_plan=second.repair_id) == listed[1:]
    assert [each.repair_id for each in repairs.list_plans(state="approved")] == [second.repair_id]
    assert [each.repair_id for each in repairs.list_plans(report_id=first.report_id)] == [first.repair_id]


@pytest.fixture
def quarantines() -> Quarantines:
    return Quarantines(Scope(a_workspace().pk, actor="key 7"))


def test_a_thing_is_withheld_and_released_and_both_are_on_record(conversation, quarantines):
    held = quarantines.quarantine(id=conversation.top.summary_id, reason="It lies.")
    assert Conversation.objects.get(pk=conversation.id).quarantined == 1
    assert IntegrityChecker.from_settings().run().is_clean

    released = quarantines.release(quarantine_id=held.quarantine_id)

    assert (held.reason, held.released_at) == ("It lies.", None)
    assert released.released_at is not None
    assert quarantines.list_quarantines() == []
    assert quarantines.list_quarantines(conversation_id=conversation.id, released=True) == [released]
    assert Conversation.objects.get(pk=conversation.id).quarantined == 0
    acts = AuditLog(quarantines.scope).list_acts()
    assert [(entry.act, entry.actor, entry.target) for entry in acts] == [
        ("release", "key 7", conversation.top.summary_id),
        ("quarantine", "key 7", conversation.top.summary_id),
    ]


def test_every_kind_of_thing_can_be_withheld_and_released_once(conversation, quarantines):
    ids = [conversation.message(30), conversation.late.summary_id, f"part_{conversation.message_ids[37]}_0"]

    held = [quarantines.quarantine(id=id, reason="why") for id in ids]

    assert [each.target for each in reversed(quarantines.list_quarantines())] == ids
    with pytest.raises(Conflict):
        quarantines.quarantine(id=ids[0], reason="why")
    quarantines.release(quarantine_id=held[0].quarantine_id)
    with pytest.raises(Conflict):
        quarantines.release(quarantine_id=held[0].quarantine_id)


@pytest.mark.parametrize(
    ("error", "ids"),
    [
        (Invalid, ("run_1", "msg_", "msg_1; DROP", "")),
        (NotFound, ("msg_999999999", "sum_0", "part_0", "file_0", "msg_x", "msg_0{}")),
    ],
)
def test_what_is_no_such_thing_cannot_be_withheld(conversation, quarantines, error, ids):
    for id in ids:
        with pytest.raises(error):
            quarantines.quarantine(id=id.format(conversation.message_ids[30]), reason="why")


def test_a_stranger_withholds_and_releases_nothing(conversation, quarantines):
    held = quarantines.quarantine(id=conversation.message(30), reason="why")
    stranger = Quarantines(Scope(a_workspace("another").pk))

    with pytest.raises(NotFound):
        stranger.quarantine(id=f"part_{conversation.message_ids[37]}_0", reason="why")
    with pytest.raises(NotFound):
        stranger.release(quarantine_id=held.quarantine_id)
