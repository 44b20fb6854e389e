from __future__ import annotations

import copy

import pytest
from django.db import transaction

from tests.conversations.ledger.forging import Objects
from tests.conversations.ledger.ledgers import a_full_conversation, exported, objects_in


@pytest.fixture(scope="session")
def full_ledger(django_db_setup, django_db_blocker) -> bytes:
    """The ledger of a conversation with something of every sort, which no longer exists."""
    with django_db_blocker.unblock(), transaction.atomic():
        written = exported(a_full_conversation())
        transaction.set_rollback(True)
    return written


@pytest.fixture(scope="session")
def full_objects(full_ledger: bytes) -> Objects:
    return objects_in(full_ledger)


@pytest.fixture
def objects(full_objects: Objects) -> Objects:
    """The lines of such a ledger, to be changed."""
    return copy.deepcopy(full_objects)
