"""Rows that are created once for all tests of a module.

They are written in a transaction that is never committed. The `db` fixture of each test is a savepoint in it, so a test
leaves no rows of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import transaction
from pytest_django import DjangoDbBlocker


@pytest.fixture(scope="module")
def module_rows(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """For fixtures of a module: what they write stays for each of its tests."""
    block = transaction.atomic()
    # Django's own tests set this, too: code that must not run in a transaction then does not count this one.
    block._from_testcase = True  # type: ignore[attr-defined]
    with django_db_blocker.unblock(), block:
        yield
        transaction.set_rollback(True)
