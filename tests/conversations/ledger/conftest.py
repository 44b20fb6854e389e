from __future__ import annotations

import copy
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction

from compaction.history.session_history import SessionHistory
from compaction.hosts.branching import Branches
from conversations.store.journal import Journal
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


@pytest.fixture(scope="session")
def branched_objects(django_db_setup, django_db_blocker) -> Objects:
    """The lines of such a conversation with a journal, whose head was moved back twice, and a summary of the rest."""
    with django_db_blocker.unblock(), transaction.atomic():
        number = a_full_conversation()
        for back in (40, 45):
            Branches.from_settings().move_head(conversation_id=number, head_seq=back, reason="edited")
        SessionHistory.from_settings().summarize_session(conversation_id=number)
        entries = [{"uuid": f"entry {n}", "type": "summary", "text": "seven boats"} for n in range(3)]
        Journal().append_entries(conversation_id=number, entries=entries)
        written = exported(number)
        transaction.set_rollback(True)
    return objects_in(written)


@pytest.fixture
def objects(full_objects: Objects) -> Objects:
    """The lines of such a ledger, to be changed."""
    return copy.deepcopy(full_objects)


@pytest.fixture(scope="module")
def full_conversation(module_rows: None, module_files: Path) -> int:
    return a_full_conversation()


@pytest.fixture
def conversation_id(full_conversation: int, module_files: Path, settings: Any, tmp_path: Path) -> int:
    """A conversation with something of every sort, and files of its own."""
    settings.MEDIA_ROOT = shutil.copytree(module_files, tmp_path / "files")
    return full_conversation
