"""Plans made, approved and applied; and everything that a repair may touch, to compare."""

from __future__ import annotations

from typing import Any

from django.db import connection

from conversations.files.large_files import LargeFileService
from conversations.ledger.ledger_export import LedgerExporter
from conversations.scope import Scope
from integrity.checker import IntegrityChecker
from integrity.repairs.applying import Repairs
from integrity.types import RepairPlanRecord
from tests.factories import a_conversation
from tests.integrity.breaking import Compacted

ADMIN = Scope(actor="key 7")


def a_plan(ledger: str | None = None) -> RepairPlanRecord:
    checker = IntegrityChecker.from_settings(ADMIN)
    return checker.plan_repairs(report_id=checker.run().report_id, ledger_file_id=ledger)


def approved(plan: RepairPlanRecord) -> RepairPlanRecord:
    ordinals = [step.ordinal for step in plan.steps]
    return Repairs(ADMIN).approve_steps(repair_id=plan.repair_id, ordinals=ordinals)


def applied(plan: RepairPlanRecord) -> RepairPlanRecord:
    approved(plan)
    return Repairs(ADMIN).apply_plan(repair_id=plan.repair_id)


def operations(plan: RepairPlanRecord) -> list[str]:
    return [step.operation for step in plan.steps]


def a_ledger(conversation: Compacted) -> str:
    """A ledger of the conversation, kept as a file of another one."""
    return stored(as_ledger(conversation))


def stored(ledger: bytes) -> str:
    keeper = a_conversation().conversation_id
    return LargeFileService.from_settings().store(conversation_id=keeper, content=ledger).file_id


def as_ledger(conversation: Compacted) -> bytes:
    return b"".join(LedgerExporter().export("default", [conversation.id]))


TABLES = {
    "conversations": "SELECT t::text FROM conversations t ORDER BY conversation_id",
    "messages": "SELECT t::text FROM messages t ORDER BY message_id",
    "parts": "SELECT t::text FROM message_parts t ORDER BY part_id",
    "summaries": "SELECT t::text FROM summaries t ORDER BY summary_id",
    "links": "SELECT t::text FROM summary_messages t ORDER BY summary_id, message_id",
    "lineage": "SELECT t::text FROM summary_parents t ORDER BY summary_id, parent_summary_id",
    "context": "SELECT to_jsonb(t) FROM context_items t ORDER BY conversation_id, ordinal",
    "withheld": "SELECT target FROM quarantines WHERE released_at IS NULL ORDER BY target",
    "jobs": "SELECT t::text FROM compaction_jobs t ORDER BY job_id",
    "runs": "SELECT t::text FROM compaction_runs t ORDER BY run_id",
    "grants": "SELECT t::text FROM grants t ORDER BY grant_id",
}


def everything() -> dict[str, list[Any]]:
    """All rows that a repair may touch, but for the history that it leaves."""
    with connection.cursor() as cursor:
        return {name: (cursor.execute(statement), cursor.fetchall())[1] for name, statement in TABLES.items()}
