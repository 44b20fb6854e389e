"""Admin pages of integrity, and actions to check or thaw conversations."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from conversations.admin import conversation
from conversations.admin_rows import RowsAdmin, act_on_each, column, link_to, offer, scope_of
from conversations.models import Conversation
from integrity.checker import IntegrityChecker
from integrity.models import (
    ColdProgress,
    ConversationCheck,
    Erasure,
    Finding,
    IntegrityReport,
    IntegrityScan,
    RepairPlan,
    RepairStep,
)
from integrity.retention.tiers import Retention

report = column("report", "report", of=lambda row: link_to(IntegrityReport, row.report_id))
plan = column("plan", "plan", of=lambda row: link_to(RepairPlan, row.plan_id))


@admin.register(IntegrityReport)
class IntegrityReportAdmin(RowsAdmin):
    list_display = ("report_id", conversation, "mode", "started_at", "messages_checked", "is_clean")
    list_filter = ("is_clean", "mode")
    search_fields = ("report_id",)
    ordering = ("-started_at", "-report_id")


@admin.register(Finding)
class FindingAdmin(RowsAdmin):
    list_display = ("finding_id", report, "code", "severity", conversation, "target")
    list_filter = ("severity",)
    search_fields = ("code", "target")
    ordering = ("-finding_id",)


@admin.register(RepairPlan)
class RepairPlanAdmin(RowsAdmin):
    list_display = ("plan_id", report, "state", "created_at", "applied_at", "undone_at")
    list_filter = ("state",)
    search_fields = ("report__report_id",)
    ordering = ("-created_at", "plan_id")


@admin.register(RepairStep)
class RepairStepAdmin(RowsAdmin):
    list_display = ("step_id", plan, "ordinal", "operation", "target", "risk", "state", "approved_by")
    list_filter = ("state", "risk")
    search_fields = ("target", "operation")
    ordering = ("-step_id",)


@admin.register(IntegrityScan)
class IntegrityScanAdmin(RowsAdmin):
    list_display = ("scan_id", conversation, "mode", "state", "requested_at", "attempts", "last_error")
    list_filter = ("state",)
    search_fields = ("last_error",)
    ordering = ("-scan_id",)


@admin.register(ConversationCheck)
class ConversationCheckAdmin(RowsAdmin):
    list_display = ("conversation_id", "checked_at", "is_clean")
    list_filter = ("is_clean",)
    search_fields = ("conversation__session_id",)
    ordering = ("-conversation_id",)


@admin.register(ColdProgress)
class ColdProgressAdmin(RowsAdmin):
    list_display = ("conversation_id", "through_seq", "moved_at")
    search_fields = ("conversation__session_id",)
    ordering = ("-conversation_id",)


@admin.register(Erasure)
class ErasureAdmin(RowsAdmin):
    list_display = ("erasure_id", conversation, "requested_by", "requested_at", "expires_at", "is_whole")
    search_fields = ("requested_by",)
    ordering = ("-requested_at", "erasure_id")


@admin.action(description="Check for damage", permissions=["act"])
def scan(table: Any, request: HttpRequest, rows: QuerySet[Conversation]) -> None:
    def act(row: Conversation) -> None:
        IntegrityChecker.from_settings(scope_of(request, row.workspace_id)).request(conversation_id=row.pk)

    act_on_each(request, rows, act, done="Conversations that a worker will check")


@admin.action(description="Thaw cold texts", permissions=["act"])
def thaw(table: Any, request: HttpRequest, rows: QuerySet[Conversation]) -> None:
    def act(row: Conversation) -> None:
        Retention.from_settings(scope_of(request, row.workspace_id)).thaw(conversation_id=row.pk)

    act_on_each(request, rows, act, done="Conversations that were thawed")


offer(Conversation, scan)
offer(Conversation, thaw)
