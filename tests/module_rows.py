"""Rows that are created once for all tests of a module.

They are written in a transaction that is never committed. Each test that uses them runs in a savepoint of it, and
leaves no changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import transaction
from django.test import override_settings
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


@pytest.fixture(autouse=True)
def changes_of_its_own(request: pytest.FixtureRequest) -> None:
    """Undo what a test changes in rows of its module."""
    if "module_rows" in request.fixturenames:
        request.getfixturevalue("db")


@pytest.fixture(scope="module")
def module_files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The directory of the files of these rows, which the tests that use them have, too."""
    files = tmp_path_factory.mktemp("files")
    with override_settings(MEDIA_ROOT=files):
        yield files
