"""Check that the ledgers of a test's conversations survive a round trip."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterable
from pathlib import Path

from django.db import transaction

from conversations.models import Conversation
from tests.conversations.ledger import verifier
from tests.conversations.ledger.ledgers import another_database, exported, imported, verified


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
    ledgers = [(each.workspace.name, exported(each.pk, each.workspace.name)) for each in conversations]
    for _, ledger in ledgers:
        report = verified(ledger)
        assert report.is_clean, report.findings
        assert verifier.verify(io.BytesIO(ledger)) == report.line_hash
    with transaction.atomic(), tempfile.TemporaryDirectory() as directory:
        another_database()
        for workspace, ledger in ledgers:
            [copy] = imported(ledger, Path(directory), workspace).conversations
            assert exported(copy.conversation_id, workspace) == ledger, copy.session_id
        transaction.set_rollback(True)
