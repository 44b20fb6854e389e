"""Rows that are made once for a whole module: each of its tests begins with them and leaves none of its own.

What is made lies in a transaction that is never committed; the `db` of each test is a savepoint in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction
from pytest_django import DjangoDbBlocker


@contextmanager
def made_once(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Within, the database is open; afterwards it is as it was."""
    block = transaction.atomic()
    # As Django's own tests say it: code that insists on committing takes this for the outside of all transactions.
    block._from_testcase = True  # type: ignore[attr-defined]
    with django_db_blocker.unblock(), block:
        try:
            yield
        finally:
            transaction.set_rollback(True)
