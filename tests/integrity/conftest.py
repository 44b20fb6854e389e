"""What tests of integrity share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.db import connection
from pytest_django import DjangoDbBlocker

from tests.integrity.breaking import Compacted, a_compacted_conversation
from tests.integrity.erasing import erasures, storage  # noqa: F401 (for the tests of erasures)
from tests.made_once import made_once


@pytest.fixture(scope="module")
def compacted(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[Compacted]:
    with made_once(django_db_blocker):
        # Beside it another one, which no finding may ever name.
        a_compacted_conversation()
        made = a_compacted_conversation()
        with connection.cursor() as cursor:
            # Nothing is left to be checked, which would keep a test from altering a table.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        yield made


@pytest.fixture
def conversation(compacted: Compacted, db: None) -> Compacted:
    """A compacted conversation, which each test breaks for itself alone."""
    return compacted
