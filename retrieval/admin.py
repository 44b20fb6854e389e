"""What retrieval keeps, in the admin: receipts of contexts, and grants, which can be taken back."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from conversations.admin import conversation
from conversations.admin_rows import RowsAdmin, act_on_each, page_of, scope_of
from retrieval.delegation.grants import Grants
from retrieval.models import AssemblyReceipt, Grant


@admin.register(AssemblyReceipt)
class AssemblyReceiptAdmin(RowsAdmin):
    list_display = ("receipt_id", conversation, "created_at")
    search_fields = ("conversation__session_id",)
    ordering = ("-created_at", "receipt_id")

    def view_on_site(self, obj: AssemblyReceipt) -> str:
        return page_of(obj.conversation, "inspector")


@admin.action(description="Take back", permissions=["act"])
def revoke(table: Any, request: HttpRequest, rows: QuerySet[Grant]) -> None:
    def act(row: Grant) -> None:
        Grants.from_settings(scope_of(request, row.workspace_id)).revoke_grant(grant_id=row.grant_id)

    act_on_each(request, rows, act, done="Grants taken back")


@admin.register(Grant)
class GrantAdmin(RowsAdmin):
    long_texts = ("question",)
    list_display = (
        "grant_id",
        "workspace",
        "tokens_used",
        "token_cap",
        "reads",
        "created_at",
        "expires_at",
        "revoked_at",
    )
    list_select_related = ("workspace",)
    search_fields = ("grant_id",)
    ordering = ("-created_at", "grant_id")
    actions = (revoke,)

    def view_on_site(self, obj: Grant) -> str:
        return reverse("grants", kwargs={"workspace": obj.workspace.name})
