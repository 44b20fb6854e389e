"""A floor that wrote less than we do would make every ratio a lie."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from tests.benchmarks.corpus import Corpus
from tests.benchmarks.floor import Floor, rows_of
from tests.factories import a_conversation, a_store

MESSAGES = list(Corpus(60))
COUNTED_OR_MADE = """
    SELECT c.next_seq, c.active_messages, c.active_tokens, c.total_tokens,
           (SELECT count(*) FROM context_items i WHERE i.conversation_id = c.conversation_id AND i.ordinal = ANY(
               SELECT seq FROM messages m WHERE m.conversation_id = c.conversation_id AND m.message_id = i.message_id))
    FROM conversations c WHERE c.conversation_id = %s
"""
SAID = """
    SELECT m.seq, m.role::text, m.content, m.token_count, m.created_at, m.chained_parts, p.ordinal, p.part_type::text,
           p.text_content, p.tool_call_id, p.tool_name, p.tool_status, p.tool_input, p.tool_output,
           p.part_id = 'part_' || m.message_id || '_0'
    FROM messages m JOIN message_parts p ON p.message_id = m.message_id WHERE m.conversation_id = %s ORDER BY m.seq
"""


@pytest.mark.parametrize("size", [1, 20])
def test_the_floor_writes_the_rows_that_we_write(size, committed_db):
    ours, theirs = (a_conversation().conversation_id for _ in range(2))
    store, floor = a_store(), Floor()

    for start in range(0, len(MESSAGES), size):
        batch = MESSAGES[start : start + size]
        rows = rows_of(batch, count=store.tokens.count)
        store.append_messages(conversation_id=ours, messages=batch)
        if size == 1:
            floor.append_one(theirs, rows[0])
        else:
            floor.append_many(theirs, rows)
    floor.connection.close()

    assert _rows(SAID, theirs) == _rows(SAID, ours)
    [counted] = _rows(COUNTED_OR_MADE, theirs)
    assert [counted] == _rows(COUNTED_OR_MADE, ours)
    assert (counted[0], counted[1], counted[-1]) == (61, 60, 60)


def _rows(statement: str, conversation_id: int) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [conversation_id])
        return cursor.fetchall()
