from __future__ import annotations

import pytest
from django.utils import timezone

from conversations.models import Workspace
from conversations.store.paging import behind

pytestmark = pytest.mark.django_db


def test_pages_of_one_row_give_each_row_once_though_all_are_of_one_moment():
    moment = timezone.now()
    names = [f"equal {number}" for number in range(5)]
    for name in names:
        row = Workspace.objects.create(name=name)
        Workspace.objects.filter(pk=row.pk).update(created_at=moment)
    rows = Workspace.objects.filter(name__in=names).order_by("-created_at", "-pk")

    given, page = [], rows
    while (row := page.first()) is not None:
        given.append(row.name)
        page = rows.filter(behind(field="created_at", moment=row.created_at, key=row.pk))

    assert given == names[::-1]


def test_what_is_newer_is_not_behind_and_what_is_older_is_whatever_its_key():
    one = Workspace.objects.create(name="first")
    another = Workspace.objects.create(name="second")
    Workspace.objects.filter(pk=another.pk).update(created_at="2020-01-01T00:00:00Z")
    rows = Workspace.objects.filter(name__in=("first", "second"))

    found = rows.filter(behind(field="created_at", moment=one.created_at, key=one.pk))

    assert [row.name for row in found] == ["second"]
