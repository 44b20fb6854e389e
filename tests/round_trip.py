"""Check that the ledgers of a test's conversations survive a round trip."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable
from pathlib import Path

from django.db import transaction

from conversations.models import Conversation, Workspace
from conversations.scope import Scope
from integrity.ledgers import Ledgers
from tests.conversations.ledger import verifier
from tests.conversations.ledger.ledgers import another_database, verified


def assert_ledgers_survive(conversation_ids: Iterable[int] | None = None) -> None:
    """Export, verify and import conversations; a second export has the same bytes.

    The default is all conversations. Both verifiers check each ledger. No other process may still use the database. Ids
    of summaries are unique, so the import needs an empty database: all tables are emptied in a transaction that is
    rolled back.
    """
    found = Conversation.objects.select_related("workspace").order_by("conversation_id")
    if conversation_ids is not None:
        found = found.filter(pk__in=list(conversation_ids))
    conversations = list(found)
    assert conversations, "There is nothing to export."
    ledgers = [(each, _exported(each.workspace, each.pk)) for each in conversations]
    for _, ledger in ledgers:
        report = verified(ledger)
        assert report.is_clean, report.findings
        assert verifier.verify(io.BytesIO(ledger)) == report.line_hash
    with transaction.atomic():
        another_database()
        for conversation, ledger in ledgers:
            assert _imported_and_exported(conversation, ledger) == ledger, conversation.session_id
        transaction.set_rollback(True)


def _exported(workspace: Workspace, conversation_id: int) -> bytes:
    return b"".join(_ledgers(workspace).lines(conversation_id=conversation_id))


def _imported_and_exported(conversation: Conversation, ledger: bytes) -> bytes:
    workspace, _ = Workspace.objects.get_or_create(name=conversation.workspace.name)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "conversation.jsonl"
        path.write_bytes(ledger)
        [copy] = _ledgers(workspace).import_file(path).conversations
    return _exported(workspace, copy.conversation_id)


def _ledgers(workspace: Workspace) -> Ledgers:
    return Ledgers.from_settings(Scope(workspace.pk, actor="operator"))
