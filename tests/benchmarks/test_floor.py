"""A floor that wrote less than we do would make every ratio a lie."""

from __future__ import annotations

from typing import Any

import pytest

from conversations.sql import rows
from tests.benchmarks.corpus import Corpus
from tests.benchmarks.floor import SQL, Floor, rows_of
from tests.factories import a_conversation, a_store

MESSAGES = list(Corpus(60))


@pytest.mark.parametrize("size", [1, 20])
def test_the_floor_writes_the_rows_that_we_write(size, committed_db):
    ours, theirs = (a_conversation().conversation_id for _ in range(2))
    store, floor = a_store(), Floor()

    for start in range(0, len(MESSAGES), size):
        batch = MESSAGES[start : start + size]
        given = rows_of(batch, count=store.tokens.count)
        store.append_messages(conversation_id=ours, messages=batch)
        if size == 1:
            floor.append_one(theirs, given[0])
        else:
            floor.append_many(theirs, given)
    floor.connection.close()

    assert _rows("messages_and_parts", theirs) == _rows("messages_and_parts", ours)
    [counted] = _rows("counted_or_made", theirs)
    assert [counted] == _rows("counted_or_made", ours)
    assert (counted[0], counted[1], counted[-1]) == (61, 60, 60)


def _rows(name: str, conversation_id: int) -> list[Any]:
    return rows(SQL[name], [conversation_id])
