"""Broken conversations, and checks of them, for tests of the pages of trust."""

from __future__ import annotations

from dataclasses import replace

from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.policy import IntegrityPolicy
from integrity.repairs.applying import Repairs
from integrity.scans import ScanWorker
from integrity.types import RepairPlanRecord
from tests.factories import a_workspace
from tests.integrity.breaking import Compacted, a_compacted_conversation, breaking
from tests.lcmsite.dashboard.visiting import HOSTILE

INTEGRITY = "/w/default/integrity/"


def a_checker() -> IntegrityChecker:
    return IntegrityChecker.from_settings(Scope(a_workspace().pk, actor="user ann"))


def a_report_on(*conversations: Compacted) -> str:
    """A report of the workspace, or of one conversation alone."""
    only = conversations[0].id if conversations else None
    return a_checker().run(conversation_id=only).report_id


def a_miscounted_conversation() -> Compacted:
    """Two counters of it are wrong, which two steps put right."""
    conversation = a_compacted_conversation()
    breaking(
        "UPDATE conversations SET total_tokens = total_tokens + 7, cold_messages = cold_messages + 3"
        " WHERE conversation_id = %s",
        conversation.id,
    )
    return conversation


def a_damaged_conversation() -> Compacted:
    """Message 5 is not what was said, and what stands there instead is out for readers of pages."""
    conversation = a_compacted_conversation()
    breaking("UPDATE messages SET content = %s WHERE message_id = %s", HOSTILE, conversation.message_ids[5])
    return conversation


def a_plan_on(report_id: str) -> RepairPlanRecord:
    return a_checker().plan_repairs(report_id=report_id)


def approved(plan: RepairPlanRecord, *ordinals: int) -> RepairPlanRecord:
    repairs = Repairs(Scope(a_workspace().pk, actor="user ann"))
    return repairs.approve_steps(repair_id=plan.repair_id, ordinals=ordinals or [step.ordinal for step in plan.steps])


def a_worker() -> ScanWorker:
    return ScanWorker(policy=replace(IntegrityPolicy(), scan_pause_ms=0))
