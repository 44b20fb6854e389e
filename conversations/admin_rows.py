"""Read-only admin tables: services write the rows, the admin shows them.

Lists leave out long columns and do not count rows; pages cut long texts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db import models
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin, TabularInline
from unfold.paginator import InfinitePaginator

from conversations.errors import LcmError
from conversations.humanize import encodable
from conversations.models import Conversation, Workspace
from conversations.scope import Scope

MOST_CHARACTERS = 20_000
MOST_ACTED_ON = 100
# Types of columns that are never shown (for search, and hashes), and of columns that only a row's own page shows.
_HIDDEN = (models.GeneratedField, models.BinaryField)
_PAGE_ONLY = (models.JSONField,)

Column = Callable[[Any], Any]


class ReadOnly:
    """A table whose rows the admin cannot add, change or remove."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    has_change_permission = has_delete_permission = has_add_permission


class RowsAdmin(ReadOnly, ModelAdmin):
    """A read-only table.

    `long_texts` are columns that may hold megabytes; `more_fields` follow the columns on a row's page.
    """

    long_texts: tuple[str, ...] = ()
    more_fields: tuple[Column, ...] = ()
    paginator = InfinitePaginator
    show_full_result_count = False
    list_disable_select_all = True
    list_per_page = 50
    list_max_show_all = 50

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Whether the user may run actions: needs the table's change permission."""
        return bool(request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        fields = self.opts.concrete_fields
        long = [*self.long_texts, *(f.name for f in fields if isinstance(f, _HIDDEN + _PAGE_ONLY))]
        return super().get_queryset(request).defer(*(name for name in long if name not in self.list_display))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        shown = [self._shown(each) for each in self.opts.concrete_fields if not isinstance(each, _HIDDEN)]
        return [*shown, *self.more_fields]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return self.get_fields(request, obj)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Find the row with this id, else rows that contain the words."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if (key := self._key(term)) is not None:
            return queryset.filter(pk=key), False
        if hasattr(queryset, "matching"):
            return queryset.matching(term).order_by(*self.ordering or ("-pk",)), False
        found = Q(pk__in=[])
        for name in self.search_fields:
            found |= Q(**{f"{name}__icontains": term})
        return queryset.filter(found), False

    def _key(self, term: str) -> str | int | None:
        """Return the primary key in an id such as msg_12, 12 or sum_...; else None."""
        if isinstance(self.opts.pk, models.TextField):
            return term if "_" in term and " " not in term else None
        number = term.rpartition("_")[2]
        return int(number) if number.isascii() and number.isdigit() and len(number) < 19 else None

    def _shown(self, field: models.Field[Any, Any]) -> Any:
        """Return how the page shows a column: keys as links, JSON as text, texts cut."""
        if isinstance(field, models.ForeignKey):
            target, attribute = field.related_model, field.attname
            return column(field.name, str(field.verbose_name), of=lambda row: link_to(target, getattr(row, attribute)))
        if isinstance(field, models.JSONField):
            dump = json.JSONEncoder(ensure_ascii=False, indent=2, default=str).encode
            return column(field.name, str(field.verbose_name), of=lambda row: _cut(dump(getattr(row, field.name))))
        if isinstance(field, models.TextField):
            return column(field.name, str(field.verbose_name), of=lambda row: _cut(getattr(row, field.name)))
        return field.name


class RowsInline(ReadOnly, TabularInline):
    """A read-only table, page by page, on the page of the row it belongs to.

    It is for tables with a primary key of two columns, which Django's admin cannot register.
    """

    extra = 0
    per_page = 50
    hide_title = True
    ordering = ("ordinal",)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields


def column(name: str, label: str, *, of: Column) -> Column:
    """A column that is computed from a row."""
    made = admin.display(description=label)(lambda row: of(row))
    made.__name__ = name
    return made


def link_to(model: Any, key: Any) -> SafeString | str:
    """A key with a link to the row's page, without reading the row."""
    if key is None:
        return "–"
    try:
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[quote(key)])
    except NoReverseMatch:
        return str(key)
    return format_html('<a class="text-link" href="{}">{}</a>', url, key)


def links_to(name: str, model: Any) -> Column:
    """A column that links to the row of a foreign key."""
    return column(name, name, of=lambda row: link_to(model, getattr(row, f"{name}_id")))


def page_of(conversation: Conversation, page: str = "transcript", **more: str) -> str:
    """The address of a conversation's page in the dashboard."""
    workspace = conversation.workspace.name
    return reverse(page, kwargs={"workspace": workspace, "conversation_id": conversation.pk, **more})


def page_in(workspace: Workspace | None, page: str, **path: Any) -> str | None:
    """The address of a workspace's page; None for a row of the whole site."""
    return None if workspace is None else reverse(page, kwargs={"workspace": workspace.name, **path})


def scope_of(request: HttpRequest, workspace_id: int) -> Scope:
    """Return the scope for a user's actions; the audit log names the user."""
    return Scope(workspace_id, actor=f"user {request.user.get_username()}")


def service_action(name: str, label: str, *, done: str, act: Callable[[HttpRequest, Any], Any]) -> Any:
    """An admin action that calls a service once for each chosen row."""

    @admin.action(description=label, permissions=["act"])
    def run(table: Any, request: HttpRequest, rows: QuerySet[Any]) -> None:
        chosen = list(rows[: MOST_ACTED_ON + 1])
        if len(chosen) > MOST_ACTED_ON:
            messages.error(request, f"Choose at most {MOST_ACTED_ON} rows. Nothing was done.")
            return
        succeeded = 0
        for row in chosen:
            try:
                act(request, row)
                succeeded += 1
            except LcmError as refusal:
                messages.error(request, f"{row}: {refusal}")
        if succeeded:
            messages.success(request, f"{done}: {succeeded}.")

    run.__name__ = name
    return run


def offer(model: type[models.Model], actions: Iterable[Any]) -> None:
    """Add admin actions of another room to the admin list of a database model."""
    table = admin.site.get_model_admin(model)
    table.actions = [*(table.actions or ()), *actions]


def _cut(text: str | None) -> SafeString | None:
    if text is None:
        return None
    more = " … (cut here; the API returns all of it)" if len(text) > MOST_CHARACTERS else ""
    return format_html(
        '<span style="white-space: pre-wrap; overflow-wrap: anywhere">{}{}</span>',
        encodable(text[:MOST_CHARACTERS]),
        more,
    )
