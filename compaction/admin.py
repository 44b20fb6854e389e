"""Admin tables of compaction, and actions that request or plan a compaction."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils.html import format_html

from compaction.engine import CompactionEngine
from compaction.history.models import HistoryJob, SessionSummary, SessionSummaryChild, SessionSummaryMemory
from compaction.models import CompactionBoundary, CompactionJob, CompactionPlan, CompactionRun, ModelEndpoint
from compaction.plans.plan_store import CompactionPlans
from conversations.admin import conversation, page_of_project
from conversations.admin_rows import RowsAdmin, RowsInline, offer, page_of, scope_of, service_action
from conversations.models import Conversation


def _page_of_run(row: CompactionRun) -> str:
    """Return the URL of the lineage after the run, or of the list of runs."""
    if row.leaf_summaries or row.condensed_summaries or row.redone_summaries:
        return f"{page_of(row.conversation, 'lineage')}?run={row.run_id}"
    return f"{page_of(row.conversation, 'conversation-runs')}#{row.run_id}"


admin.site.register(
    CompactionRun,
    RowsAdmin,
    list_display=("run_id", conversation, "outcome", "reason", "tokens_before", "tokens_after", "started_at"),
    list_filter=("outcome", "reason"),
    search_fields=("conversation__session_id",),
    ordering=("-started_at", "-run_id"),
    view_on_site=lambda self, obj: _page_of_run(obj),
)
admin.site.register(
    CompactionJob,
    RowsAdmin,
    list_display=(
        "job_id", conversation, "state", "reason", "attempts", "requested_at", "leased_until", "last_error",
    ),
    list_filter=("state", "reason"),
    search_fields=("last_error",),
    view_on_site=lambda self, obj: page_of(obj.conversation, "conversation-runs"),
)  # fmt: skip
admin.site.register(
    CompactionPlan,
    RowsAdmin,
    list_display=(
        "plan_id", conversation, "created_at", "tokens_before", "tokens_expected", "executed_at", "refusal",
    ),
    search_fields=("conversation__session_id",),
    ordering=("-created_at", "plan_id"),
    view_on_site=lambda self, obj: page_of(obj.conversation, "plan", plan_id=obj.plan_id),
)  # fmt: skip
admin.site.register(
    CompactionBoundary,
    RowsAdmin,
    list_display=("boundary_id", conversation, "host_reference", "last_seq", "recorded_at"),
    search_fields=("host_reference",),
    view_on_site=lambda self, obj: page_of(obj.conversation, "boundaries"),
)
admin.site.register(
    ModelEndpoint,
    RowsAdmin,
    list_display=("name", "open_until", "consecutive_failures", "last_failure", "calls", "tokens_in", "tokens_out"),
    search_fields=("name",),
)


class Members(RowsInline):
    model = SessionSummaryChild
    fk_name = "parent"
    fields = ("ordinal", "child")
    verbose_name_plural = "members"


class Memories(RowsInline):
    model = SessionSummaryMemory
    fields = ("ordinal", "item_type", "message", "memory_summary")
    verbose_name_plural = "sources"


admin.site.register(
    SessionSummary,
    RowsAdmin,
    long_texts=("content",),
    list_display=("summary_id", "kind", "project", conversation, "latest_at", "token_count", "level"),
    list_select_related=("project", "conversation"),
    list_filter=("kind", "level", "is_degraded"),
    search_fields=("content",),
    search_help_text="An id, or words of a summary",
    ordering=("-created_at", "summary_id"),
    inlines=(Members, Memories),
    view_on_site=lambda self, obj: f"{page_of_project(obj.workspace, obj.project, kind=obj.kind)}#{obj.pk}",
)
admin.site.register(
    HistoryJob,
    RowsAdmin,
    list_display=("job_id", "project", conversation, "state", "reason", "attempts", "requested_at", "last_error"),
    list_select_related=("project", "conversation"),
    list_filter=("state", "reason"),
    search_fields=("last_error",),
    view_on_site=lambda self, obj: page_of_project(obj.workspace, obj.project),
)


def _compact(request: HttpRequest, row: Conversation) -> None:
    CompactionEngine.from_settings(scope_of(request, row.workspace_id)).request(conversation_id=row.pk)


def _plan(request: HttpRequest, row: Conversation) -> Any:
    made = CompactionPlans.from_settings(scope_of(request, row.workspace_id)).plan(conversation_id=row.pk)
    url = page_of(row, "plan", plan_id=made.plan_id)
    messages.info(request, format_html('{}: <a class="text-link" href="{}">{}</a>', row, url, made.plan_id))


offer(
    Conversation,
    [
        service_action("compact", "Compact in the background", done="Compactions requested", act=_compact),
        service_action("plan", "Plan a compaction", done="Plans made", act=_plan),
    ],
)
