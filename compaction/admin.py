"""The admin of compaction: its rows, and actions to compact or plan."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from compaction.engine import CompactionEngine
from compaction.models import CompactionBoundary, CompactionJob, CompactionPlan, CompactionRun, ModelEndpoint
from compaction.plans.plan_store import CompactionPlans
from conversations.admin import conversation
from conversations.admin_rows import RowsAdmin, act_on_each, offer, page_of, scope_of
from conversations.models import Conversation


@admin.register(CompactionRun)
class CompactionRunAdmin(RowsAdmin):
    list_display = ("run_id", conversation, "outcome", "reason", "tokens_before", "tokens_after", "started_at")
    list_filter = ("outcome", "reason")
    search_fields = ("conversation__session_id",)
    ordering = ("-started_at", "-run_id")

    def view_on_site(self, obj: CompactionRun) -> str:
        return f"{page_of(obj.conversation, 'lineage')}?run={obj.run_id}"


@admin.register(CompactionJob)
class CompactionJobAdmin(RowsAdmin):
    list_display = ("job_id", conversation, "state", "reason", "attempts", "requested_at", "leased_until", "last_error")
    list_filter = ("state", "reason")
    search_fields = ("last_error",)
    ordering = ("-job_id",)

    def view_on_site(self, obj: CompactionJob) -> str:
        return page_of(obj.conversation, "conversation-runs")


@admin.register(CompactionPlan)
class CompactionPlanAdmin(RowsAdmin):
    list_display = ("plan_id", conversation, "created_at", "tokens_before", "tokens_expected", "executed_at", "refusal")
    search_fields = ("conversation__session_id",)
    ordering = ("-created_at", "plan_id")

    def view_on_site(self, obj: CompactionPlan) -> str:
        return page_of(obj.conversation, "plan", plan_id=obj.plan_id)


@admin.register(CompactionBoundary)
class CompactionBoundaryAdmin(RowsAdmin):
    list_display = ("boundary_id", conversation, "host_reference", "last_seq", "recorded_at")
    search_fields = ("host_reference",)
    ordering = ("-boundary_id",)


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(RowsAdmin):
    list_display = ("name", "open_until", "consecutive_failures", "last_failure", "calls", "tokens_in", "tokens_out")
    search_fields = ("name",)
    ordering = ("name",)


@admin.action(description="Have a worker make room", permissions=["act"])
def compact(table: Any, request: HttpRequest, rows: QuerySet[Conversation]) -> None:
    def act(row: Conversation) -> None:
        CompactionEngine.from_settings(scope_of(request, row.workspace_id)).request(conversation_id=row.pk)

    act_on_each(request, rows, act, done="Conversations that a worker will make room in")


@admin.action(description="Plan a compaction", permissions=["act"])
def plan(table: Any, request: HttpRequest, rows: QuerySet[Conversation]) -> None:
    def act(row: Conversation) -> None:
        made = CompactionPlans.from_settings(scope_of(request, row.workspace_id)).plan(conversation_id=row.pk)
        url = page_of(row, "plan", plan_id=made.plan_id)
        messages.info(request, format_html('{}: <a class="text-link" href="{}">{}</a>', row, url, made.plan_id))

    act_on_each(request, rows, act, done="Plans made")


offer(Conversation, compact)
offer(Conversation, plan)
