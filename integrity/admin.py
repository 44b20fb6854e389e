"""Admin tables of integrity, and actions that check or thaw conversations."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from conversations.admin import conversation
from conversations.admin_rows import RowsAdmin, links_to, offer, page_in, page_of, scope_of, service_action
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

report = links_to("report", IntegrityReport)
plan = links_to("plan", RepairPlan)

admin.site.register(
    IntegrityReport,
    RowsAdmin,
    list_display=("report_id", conversation, "mode", "started_at", "messages_checked", "is_clean"),
    list_filter=("is_clean", "mode"),
    search_fields=("report_id",),
    ordering=("-started_at", "-report_id"),
    view_on_site=lambda self, obj: page_in(obj.workspace, "report", report_id=obj.pk),
)
admin.site.register(
    Finding,
    RowsAdmin,
    list_display=("finding_id", report, "code", "severity", conversation, "target"),
    list_filter=("severity",),
    search_fields=("code", "target"),
    view_on_site=lambda self, obj: page_in(obj.report.workspace, "report", report_id=obj.report_id),
)
admin.site.register(
    RepairPlan,
    RowsAdmin,
    list_display=("plan_id", report, "state", "created_at", "applied_at", "undone_at"),
    list_filter=("state",),
    search_fields=("report__report_id",),
    ordering=("-created_at", "plan_id"),
    view_on_site=lambda self, obj: page_in(obj.report.workspace, "repairs", repair_id=obj.pk),
)
admin.site.register(
    RepairStep,
    RowsAdmin,
    list_display=("step_id", plan, "ordinal", "operation", "target", "risk", "state", "approved_by"),
    list_filter=("state", "risk"),
    search_fields=("target", "operation"),
    view_on_site=lambda self, obj: page_in(obj.plan.report.workspace, "repairs", repair_id=obj.plan_id),
)
admin.site.register(
    IntegrityScan,
    RowsAdmin,
    list_display=("scan_id", conversation, "mode", "state", "requested_at", "attempts", "last_error"),
    list_filter=("state",),
    search_fields=("last_error",),
    view_on_site=lambda self, obj: page_in(obj.workspace, "scan", scan_id=obj.pk),
)
admin.site.register(
    ConversationCheck,
    RowsAdmin,
    list_display=("conversation_id", "checked_at", "is_clean"),
    list_filter=("is_clean",),
    search_fields=("conversation__session_id",),
    view_on_site=lambda self, obj: page_of(obj.conversation, "conversation-trust"),
)
admin.site.register(
    ColdProgress,
    RowsAdmin,
    list_display=("conversation_id", "through_seq", "moved_at"),
    search_fields=("conversation__session_id",),
)
admin.site.register(
    Erasure,
    RowsAdmin,
    list_display=("erasure_id", conversation, "requested_by", "requested_at", "expires_at", "is_whole"),
    search_fields=("requested_by",),
    ordering=("-requested_at", "erasure_id"),
    view_on_site=lambda self, obj: page_in(obj.conversation.workspace, "erasures"),
)


def _scan(request: HttpRequest, row: Conversation) -> None:
    IntegrityChecker.from_settings(scope_of(request, row.workspace_id)).request(conversation_id=row.pk)


def _thaw(request: HttpRequest, row: Conversation) -> None:
    Retention.from_settings(scope_of(request, row.workspace_id)).thaw(conversation_id=row.pk)


offer(
    Conversation,
    [
        service_action("scan", "Check in the background", done="Checks requested", act=_scan),
        service_action("thaw", "Thaw cold messages", done="Conversations thawed", act=_thaw),
    ],
)
