"""An assembly while others compact: it sees the context of one moment, whole."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from conversations.scope import Scope
from conversations.types import SummaryRecord
from retrieval.assembler import ContextAssembler
from tests.factories import a_conversation, a_store, a_workspace
from tests.round_trip import assert_ledgers_survive
from tests.summaries import a_summary_of


@pytest.mark.parametrize("query", [None, "topic7"])
def test_what_is_assembled_while_others_compact_holds_every_message_once(committed_db, query):
    store = a_store()
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 101))).conversation_id
    assembler = ContextAssembler.from_settings(Scope(a_workspace().pk))

    # One for each assembled context: the summaries are made between the first and the last of them.
    assembled = threading.Semaphore(0)

    def a_summary(**sources: Any) -> SummaryRecord:
        made = a_summary_of(store, conversation_id, **sources)
        assembled.acquire()
        return made

    def compact() -> None:
        try:
            leaves = [a_summary(seqs=range(at, at + 4)) for at in range(1, 81, 4)]
            for at in range(0, 20, 4):
                a_summary(summaries=leaves[at : at + 4])
        finally:
            connection.close()

    shown = []
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(compact)
        while not work.done():
            shown.append(assembler.assemble(conversation_id=conversation_id, query=query))
            assembled.release()
        work.result()

    assert len({len(context.items) for context in shown}) > 1
    for context in shown:
        items = [item for item in context.items if not item.is_recalled]
        assert [seq for item in items for seq in range(item.first_seq, item.last_seq + 1)] == list(range(1, 101))
    assert_ledgers_survive()
