"""Admin tables of receipts, map runs, embedders and grants."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from conversations.admin import conversation
from conversations.admin_rows import RowsAdmin, page_in, page_of, scope_of, service_action
from retrieval.delegation.grants import Grants
from retrieval.models import AssemblyReceipt, Grant, MapEvent, MapItem, MapRun
from retrieval.semantic.models import EmbeddedConversation, Embedder, RefusedPassage

admin.site.register(
    AssemblyReceipt,
    RowsAdmin,
    list_display=("receipt_id", conversation, "created_at"),
    search_fields=("conversation__session_id",),
    ordering=("-created_at", "receipt_id"),
    view_on_site=lambda self, obj: page_of(obj.conversation, "inspector"),
)


def _revoke(request: HttpRequest, row: Grant) -> None:
    Grants.from_settings(scope_of(request, row.workspace_id)).revoke_grant(grant_id=row.grant_id)


admin.site.register(
    Grant,
    RowsAdmin,
    long_texts=("question",),
    list_display=(
        "grant_id", "workspace", "tokens_used", "token_cap", "reads", "created_at", "expires_at", "revoked_at",
    ),
    list_select_related=("workspace",),
    list_filter=(("revoked_at", admin.EmptyFieldListFilter),),
    search_fields=("grant_id",),
    ordering=("-created_at", "grant_id"),
    actions=(service_action("revoke", "Revoke", done="Grants revoked", act=_revoke),),
    view_on_site=lambda self, obj: page_in(obj.workspace, "grants"),
)  # fmt: skip


def _page_of_map_run(row: MapRun) -> str | None:
    return page_in(row.workspace, "map-run", map_run_id=row.pk)


admin.site.register(
    MapRun,
    RowsAdmin,
    long_texts=("prompt",),
    list_display=("run_id", "workspace", "kind", "state", "pause_reason", "total", "created_at", "finished_at"),
    list_select_related=("workspace",),
    search_fields=("run_id",),
    ordering=("-created_at", "run_id"),
    view_on_site=lambda self, obj: _page_of_map_run(obj),
)
admin.site.register(
    MapItem,
    RowsAdmin,
    long_texts=("input", "output", "validation_errors"),
    list_display=("item_id", "run_id", "position", "state", "error_kind", "refused_answers", "finished_at"),
    search_fields=("run__run_id",),
    ordering=("-item_id",),
    view_on_site=lambda self, obj: _page_of_map_run(obj.run),
)
admin.site.register(
    MapEvent,
    RowsAdmin,
    list_display=("event_id", "run_id", "seq", "at", "actor", "event", "position"),
    search_fields=("run__run_id",),
    ordering=("-event_id",),
    view_on_site=lambda self, obj: _page_of_map_run(obj.run),
)
admin.site.register(
    Embedder,
    RowsAdmin,
    list_display=("embedder_id", "model", "dimension", "state", "created_at", "switched_at"),
    search_fields=("model",),
    ordering=("-embedder_id",),
)
admin.site.register(
    EmbeddedConversation,
    RowsAdmin,
    list_display=("job_id", conversation, "embedder_id", "upto_seq", "passages", "state", "attempts"),
    search_fields=("conversation__session_id",),
    ordering=("-job_id",),
    view_on_site=lambda self, obj: page_of(obj.conversation, "transcript"),
)
admin.site.register(
    RefusedPassage,
    RowsAdmin,
    list_display=("refusal_id", "embedder_id", "message_id", "passage", "reason", "refused_at"),
    search_fields=("reason",),
    ordering=("-refusal_id",),
)
