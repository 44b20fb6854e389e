"""Readers beside others: each sees the context of one moment, whole, and none is given more than its leave."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from conversations.scope import Scope
from conversations.types import SummaryRecord
from lcmsite.connections import closing_connections
from retrieval.assembler import ContextAssembler
from retrieval.delegation.grants import Grants
from retrieval.delegation.types import GrantExceeded
from tests.conversations.appending import at_once
from tests.factories import a_conversation, a_store, a_workspace
from tests.retrieval.lineages import engine, message_id, pages, told
from tests.round_trip import assert_ledgers_survive
from tests.summaries import a_summary_of


def test_what_is_assembled_while_others_compact_holds_every_message_once(committed_db):
    store = a_store()
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 61))).conversation_id
    assembler = ContextAssembler.from_settings(Scope(a_workspace().pk))

    # One for each assembled context: the summaries are made between the first and the last of them.
    assembled = threading.Semaphore(0)

    def a_summary(**sources: Any) -> SummaryRecord:
        made = a_summary_of(store, conversation_id, **sources)
        assembled.acquire()
        return made

    def compact() -> None:
        leaves = [a_summary(seqs=range(at, at + 4)) for at in range(1, 41, 4)]
        for at in range(0, 10, 5):
            a_summary(summaries=leaves[at : at + 5])

    shown = []
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(closing_connections, compact)
        while not work.done():
            query = "topic7" if len(shown) % 2 else None
            shown.append(assembler.assemble(conversation_id=conversation_id, query=query))
            assembled.release()
        work.result()

    assert len({len(context.items) for context in shown}) > 1
    for context in shown:
        items = [item for item in context.items if not item.is_recalled]
        assert [seq for item in items for seq in range(item.first_seq, item.last_seq + 1)] == list(range(1, 61))
    assert_ledgers_survive()


def test_a_compaction_between_two_pages_neither_loses_nor_doubles_anything(committed_db):
    number = a_conversation(*(f"message {seq} " * 5 for seq in range(1, 13))).conversation_id
    a_summary_of(a_store(), number, seqs=[1, 2])
    asked = {"conversation_id": number, "from_seq": 1, "to_seq": 12, "include_messages": True}
    expected = told([engine().expand_range(**asked)])
    first = engine().expand_range(**asked, token_cap=40)
    a_summary_of(a_store(), number, seqs=[3, 4, 5, 6, 7, 8])

    rest = pages(engine().expand_range, **asked, token_cap=40, cursor=first.cursor)

    assert told([first, *rest]) == expected
    assert told([engine().expand_range(**asked)]) != expected


def test_however_many_read_at_once_they_are_never_given_more_than_the_cap(committed_db):
    number = a_conversation("The port is 5433.").conversation_id
    grants = Grants(scope=Scope(a_workspace().pk))
    asked = {"question": "which port?", "item_ids": [message_id(number, 1)], "depth": 1, "seconds": 300}
    grant = grants.issue(workspace_id=a_workspace().pk, **asked, token_cap=1000)
    given, refused = [], []

    def read(_: int) -> None:
        for _ in range(5):
            try:
                with grants.reserve(grant_id=grant.grant_id, wanted=150) as room:
                    room.used = room.tokens
                given.append(room.tokens)
            except GrantExceeded as refusal:
                refused.append(refusal.code)

    at_once(read, workers=8)

    kept = grants.get_grant(grant_id=grant.grant_id)
    assert kept.tokens_used == sum(given) == 1000
    assert (kept.reads, kept.refusals) == (len(given), {"grant_exceeded": len(refused)})
    assert len(given) + len(refused) == 40
