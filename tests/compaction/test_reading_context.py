"""Reading the context that a plan is made for: what it costs does not depend on what the planner happens to know."""

from __future__ import annotations

import pytest
from django.db import connection

from compaction.sources import read_slots
from conversations import sql
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result
from tests.statements import rows_handled

pytestmark = pytest.mark.django_db


def test_each_message_is_met_once_with_its_parts_however_new_the_rows_are():
    a_conversation(*("said by others" for _ in range(500)))
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE context_items, messages, message_parts")
    # Since then, nobody has told the planner of this one, as after an import: a join that is quick for a few rows, and
    # goes through all of them for each of many, would be chosen.
    conversation_id = a_conversation().conversation_id
    spoken = [said for n in range(500) for said in (a_tool_call(f"call_{n}"), a_tool_result(f"call_{n}", "done"))]
    a_store().append_messages(conversation_id=conversation_id, messages=spoken)

    slots = list(read_slots(conversation_id))
    handled = rows_handled(sql.load("compaction/sources.sql")["context_slots"], {"conversation_id": conversation_id})

    assert slots[0].calls == slots[1].calls != slots[2].calls == slots[3].calls
    assert handled <= 20 * len(slots)
