"""Admin tables of users, keys, lockouts and the gateway."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from axes.models import AccessAttempt
from axes.utils import reset
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import QuerySet, Sum, Window
from django.http import HttpRequest
from django.utils import timezone
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from conversations.admin import conversation
from conversations.admin_rows import RowsAdmin, page_in, page_of, scope_of, service_action
from lcmsite.access import keys, users
from lcmsite.models import ApiKey, GatewayExchange, Membership
from lcmsite.types import Role

admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):
    """Users can be deactivated, but not deleted, because the audit log names them."""

    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "is_active", "is_staff", "is_superuser", "last_login")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, ModelAdmin):
    """Permission groups for staff; a role in a workspace is stored in Membership."""


@admin.register(Membership)
class MembershipAdmin(ModelAdmin):
    """The role of a user in a workspace."""

    list_display = ("user", "workspace", "role", "created_at")
    list_select_related = ("user", "workspace")
    list_filter = ("role",)
    search_fields = ("user__username", "workspace__name")
    raw_id_fields = ("user", "workspace")
    fields = ("user", "workspace", "role")
    ordering = ("workspace__name", "user__username")
    list_per_page = 50

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        # User and workspace cannot be changed: add another membership instead.
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
    """Whether the membership belongs to this user, who may not change or remove it."""
    return obj is not None and obj.user_id == request.user.pk


def _revoke(request: HttpRequest, row: ApiKey) -> None:
    keys.revoke(scope_of(request, row.workspace_id), key=str(row.pk))


admin.site.register(
    ApiKey,
    RowsAdmin,
    list_display=("name", "prefix", "workspace", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at"),
    list_select_related=("workspace",),
    search_fields=("name", "prefix"),
    actions=(service_action("revoke", "Revoke", done="Keys revoked", act=_revoke),),
    view_on_site=lambda self, obj: page_in(obj.workspace, "keys"),
)


class AttemptsAdmin(RowsAdmin):
    """Failed logins and the resulting lockouts; submitted form data is not shown."""

    list_display = ("username", "ip_address", "failures_since_start", "attempt_time", "locked_until")
    search_fields = ("username", "ip_address")
    ordering = ("-attempt_time", "-pk")

    def get_queryset(self, request: HttpRequest) -> QuerySet[AccessAttempt]:
        # A lockout counts failures per username and address; axes stores a row for each user agent.
        together = Window(Sum("failures_since_start"), partition_by=["username", "ip_address"])
        return super().get_queryset(request).annotate(failures=together)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return ["username", "ip_address", "user_agent", "path_info", "failures_since_start", "attempt_time"]

    @admin.display(description="locked until", empty_value="not locked")
    def locked_until(self, row: Any) -> datetime | None:
        until = row.attempt_time + settings.AXES_COOLOFF_TIME
        return until if row.failures >= settings.AXES_FAILURE_LIMIT and until > timezone.now() else None


def _lift(request: HttpRequest, row: AccessAttempt) -> None:
    reset(ip=row.ip_address, username=row.username)
    # A lockout belongs to no workspace, so no workspace's audit log can record this.
    admin.site.get_model_admin(AccessAttempt).log_change(request, row, "Lockout lifted.")


admin.site.register(
    AccessAttempt,
    AttemptsAdmin,
    actions=(service_action("lift", "Lift the lockout", done="Lockouts lifted", act=_lift),),
)
admin.site.register(
    LogEntry,
    RowsAdmin,
    list_display=("action_time", "user", "__str__"),
    list_select_related=("user", "content_type"),
    search_fields=("user__username", "object_repr"),
)
admin.site.register(
    GatewayExchange,
    RowsAdmin,
    list_display=("exchange_id", conversation, "surface", "side", "model", "status", "is_complete", "received_at"),
    search_fields=("conversation__session_id",),
    ordering=("-exchange_id",),
    view_on_site=lambda self, obj: page_of(obj.conversation, "transcript"),
)
