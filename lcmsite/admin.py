"""People and keys in the admin. A role is given, and a key taken back, by the services that write it down."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from conversations.admin_rows import RowsAdmin, act_on_each, scope_of
from lcmsite.access import keys, users
from lcmsite.models import ApiKey, Membership
from lcmsite.types import Role

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):
    """People are made and changed here, and put out by being made inactive: the audit log goes on naming them."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "is_active", "is_staff", "is_superuser", "last_login")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    """Django's groups of permissions, for staff; what people may do in a workspace is their membership's to say."""


@admin.register(Membership)
class MembershipAdmin(ModelAdmin):
    """Who is what, where."""

    list_display = ("user", "workspace", "role", "created_at")
    list_select_related = ("user", "workspace")
    list_filter = ("role",)
    search_fields = ("user__username", "workspace__name")
    raw_id_fields = ("user", "workspace")
    fields = ("user", "workspace", "role")
    ordering = ("workspace__name", "user__username")
    list_per_page = 50

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # Somebody else's, or another workspace's, would be another membership.
        return () if obj is None else ("user", "workspace")

    def has_change_permission(self, request: HttpRequest, obj: Membership | None = None) -> bool:
        return super().has_change_permission(request, obj) and not _is_own(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Membership | None = None) -> bool:
        return super().has_delete_permission(request, obj) and not _is_own(request, obj)

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        scope = scope_of(request, obj.workspace_id)
        users.set_role(scope, username=obj.user.get_username(), role=Role(obj.role))
        made = Membership.objects.get(user_id=obj.user_id, workspace_id=obj.workspace_id)
        obj.pk, obj.created_at = made.pk, made.created_at

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        users.remove(scope_of(request, obj.workspace_id), username=obj.user.get_username())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        for membership in queryset.select_related("user"):
            self.delete_model(request, membership)


def _is_own(request: HttpRequest, obj: Membership | None) -> bool:
    """Nobody puts themselves out, or down, here: a workspace might be left without an admin."""
    return obj is not None and obj.user_id == request.user.pk


@admin.action(description="Take back", permissions=["act"])
def revoke(table: Any, request: HttpRequest, rows: QuerySet[ApiKey]) -> None:
    def act(row: ApiKey) -> None:
        keys.revoke(scope_of(request, row.workspace_id), key=str(row.pk))

    act_on_each(request, rows, act, done="Keys taken back")


@admin.register(ApiKey)
class ApiKeyAdmin(RowsAdmin):
    list_display = ("name", "prefix", "workspace", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at")
    list_select_related = ("workspace",)
    search_fields = ("name", "prefix")
    ordering = ("-api_key_id",)
    actions = (revoke,)

    def view_on_site(self, obj: ApiKey) -> str:
        return reverse("keys", kwargs={"workspace": obj.workspace.name})


@admin.register(LogEntry)
class LogEntryAdmin(RowsAdmin):
    """What was changed here: people, groups and memberships."""

    list_display = ("action_time", "user", "__str__")
    list_select_related = ("user", "content_type")
    search_fields = ("user__username", "object_repr")
    ordering = ("-id",)
