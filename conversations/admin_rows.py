"""Tables as the admin shows them: to be looked at. What stands in them is written by services, and by nobody else.

A list reads short columns alone; a page reads long texts up to where it cuts them. Neither counts a table.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.functions import Left
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.admin import ModelAdmin
from unfold.paginator import InfinitePaginator

from conversations.errors import LcmError
from conversations.models import Conversation
from conversations.scope import Scope

MOST_CHARACTERS = 20_000
MOST_ACTED_ON = 100
# Kept for search and for hashes; nobody reads them.
_NEVER_READ = (models.GeneratedField, models.BinaryField)
_READ_ALONE = (models.JSONField,)


class RowsAdmin(ModelAdmin):
    """Rows that nobody adds, changes or removes here: no permission leads to a form, an action or a path that would.

    `long_texts` are columns that may hold megabytes. What is searched for is an id, or what `search_fields` hold.
    """

    long_texts: tuple[str, ...] = ()
    paginator = InfinitePaginator
    show_full_result_count = False
    list_disable_select_all = True
    list_per_page = 50
    list_max_show_all = 50

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Who may have a service do something to a row: whoever Django would let change it, and it never does."""
        return bool(request.user.has_perm(f"{self.opts.app_label}.change_{self.opts.model_name}"))

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        unread = [*self.long_texts, *(f.name for f in self._fields() if isinstance(f, _NEVER_READ + _READ_ALONE))]
        return super().get_queryset(request).defer(*(name for name in unread if name not in self.list_display))

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        if row is not None and self.long_texts:
            # One more than is shown tells whether it is all.
            cut = {f"{name}_cut": Left(name, MOST_CHARACTERS + 1) for name in self.long_texts}
            for name, text in self.model._default_manager.filter(pk=row.pk).values(**cut).get().items():
                setattr(row, name, text)
        return row

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return [self._told(each) for each in self._fields() if not isinstance(each, _NEVER_READ)]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        return self.get_fields(request, obj)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """The row of this id; rows whose columns hold the words; of texts, those that a search would find."""
        term = search_term.strip()
        if not term:
            return queryset, False
        if (found := self._by_id(queryset, term)) is not None:
            return found, False
        if hasattr(queryset, "matching"):
            return queryset.matching(term).order_by(*self.ordering or ("-pk",)), False
        wanted = Q(pk__in=[])
        for name in self.search_fields:
            wanted |= Q(**{f"{name}__icontains": term})
        return queryset.filter(wanted), False

    def _by_id(self, queryset: QuerySet[Any], term: str) -> QuerySet[Any] | None:
        """The rows of an id as people write it, msg_12 or 12 or sum_..; None for what is none."""
        pk = self.opts.pk
        if isinstance(pk, models.TextField):
            return queryset.filter(pk=term) if "_" in term and " " not in term else None
        number = term.rpartition("_")[2]
        return queryset.filter(pk=int(number)) if number.isascii() and number.isdigit() and len(number) < 19 else None

    def _fields(self) -> Iterable[models.Field[Any, Any]]:
        return self.opts.concrete_fields

    def _told(self, field: models.Field[Any, Any]) -> Callable[[Any], Any]:
        """What the page shows of a column."""
        name, is_long = field.name, field.name in self.long_texts

        def told(row: Any) -> Any:
            if isinstance(field, models.ForeignKey):
                return link_to(field.related_model, getattr(row, field.attname))
            if isinstance(field, models.JSONField):
                return _cut(json.dumps(getattr(row, name), ensure_ascii=False, indent=2, default=str))
            value = getattr(row, f"{name}_cut", None) if is_long else getattr(row, name)
            if isinstance(value, datetime):
                return f"{value:%Y-%m-%d %H:%M:%S} UTC"
            return _cut(value) if isinstance(value, str) else value

        told.__name__ = name
        told.short_description = field.verbose_name  # type: ignore[attr-defined]
        return told


def link_to(model: Any, key: Any) -> SafeString | str:
    """A row's key, leading to its page here; the row is not read for it."""
    if key is None:
        return "–"
    try:
        url = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_change", args=[quote(key)])
    except NoReverseMatch:
        return str(key)
    return format_html('<a class="text-link" href="{}">{}</a>', url, key)


def page_of(conversation: Conversation, page: str = "transcript", **more: str) -> str:
    """The address of a conversation's page in the dashboard."""
    workspace = conversation.workspace.name
    return reverse(page, kwargs={"workspace": workspace, "conversation_id": conversation.pk, **more})


def scope_of(request: HttpRequest, workspace_id: int) -> Scope:
    """In whose name a service acts: the workspace's, by this person, as the audit log will name them."""
    return Scope(workspace_id, actor=f"user {request.user.get_username()}")


def act_on_each(request: HttpRequest, rows: QuerySet[Any], act: Callable[[Any], Any], *, done: str) -> None:
    """Do it to each of the rows, at most so many; tell how often it was done, and what was refused, and why."""
    chosen = list(rows[: MOST_ACTED_ON + 1])
    if len(chosen) > MOST_ACTED_ON:
        messages.error(request, f"Choose at most {MOST_ACTED_ON} at once; nothing was done.")
        return
    succeeded = 0
    for row in chosen:
        try:
            act(row)
            succeeded += 1
        except LcmError as refusal:
            messages.error(request, f"{row}: {refusal}")
    if succeeded:
        messages.success(request, f"{done}: {succeeded}.")


def offer(model: type[models.Model], action: Callable[..., Any]) -> None:
    """Let another room's action be chosen in the list of a table of this one."""
    table = admin.site.get_model_admin(model)
    table.actions = [*(table.actions or ()), action]


def column(name: str, label: str, *, of: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A column of a list that is made of a row."""

    def made(row: Any) -> Any:
        return of(row)

    made.__name__ = name
    made.short_description = label  # type: ignore[attr-defined]
    return made


def _cut(text: str) -> SafeString:
    more = " … cut here; the API gives all of it" if len(text) > MOST_CHARACTERS else ""
    return format_html(
        '<span style="white-space: pre-wrap; overflow-wrap: anywhere">{}{}</span>', text[:MOST_CHARACTERS], more
    )
