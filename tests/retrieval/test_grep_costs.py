"""What a search asks of the database: how many questions, and how many rows are gone through for them."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from django.db import connection

from retrieval.types import GrepResult
from tests.factories import a_conversation, a_store
from tests.retrieval.lineages import engine
from tests.statements import analyze, counted_statements, rows_gone_through
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def the_newest(query: str, conversation_id: int, **asked: Any) -> GrepResult:
    return engine().grep(query=query, conversation_id=conversation_id, sort="recency", **asked)


def analyzed(*texts: str) -> int:
    """A conversation of these texts, of which the statistics know that autovacuum keeps.

    A search sends its settings only with a transaction of its own, and a test is inside of one. Plans that the
    connection has cached may be of earlier tests, with other statistics.
    """
    conversation_id = a_conversation(*texts).conversation_id
    analyze("messages, message_parts")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan")
        cursor.execute("DISCARD PLANS")
    return conversation_id


def rows_for(query: str, conversation_id: int) -> int:
    before = rows_gone_through()
    assert len(the_newest(query, conversation_id, limit=5).matches) == 5
    return rows_gone_through() - before


def test_the_newest_with_common_words_are_found_however_long_the_history_is():
    texts = [f"an error report again, number {number}" for number in range(1200)]
    queries = ("error", "error report", "error report again")

    rows = []
    for size in (100, 1200):
        conversation_id = analyzed(*texts[:size])
        rows.append([rows_for(query, conversation_id) for query in queries])

    assert all(long < short + 10 for short, long in zip(*rows, strict=True))


def test_common_words_are_found_with_few_rows_even_if_thousands_of_words_are_common():
    words = [f"q{''.join(letters)}z" for letters in product("abcdefghijkl", repeat=3)]
    conversation_id = analyzed(*(" ".join(words[number % 2 :: 2]) for number in range(200)))

    assert max(rows_for(word, conversation_id) for word in words[::41]) < 80


def test_what_covers_a_message_is_looked_for_in_the_context_however_many_summaries_led_there():
    conversation_id = analyzed(*["a boat"] * 1200)
    top = a_summary_of(a_store(), conversation_id, seqs=range(1101, 1201), content="Leaf.")
    for number in range(6):
        top = a_summary_of(a_store(), conversation_id, summaries=[top], content=f"Wider by {number}.")
    gone_through = {}

    for limit in (10, 40):
        before = rows_gone_through()
        found = the_newest("boat", conversation_id, limit=limit).matches
        gone_through[limit] = rows_gone_through() - before
        assert [match.covered_by for match in found] == [top.summary_id] * limit

    # Of each more: its own row, for what is said and for what is shown, the item of the context, its summary, and the
    # session of its conversation.
    assert gone_through[40] - gone_through[10] <= 30 * 5


def searches(sent: list[str]) -> list[str]:
    """The statements that search for words."""
    return [statement for statement in sent if "@@" in statement]


def test_the_newest_windows_are_searched_first_and_no_more_of_them_than_it_takes():
    conversation_id = analyzed("a lighthouse", *["a green boat"] * 8, *["a red house"] * 4990, *["a red boat"] * 10)

    newest, oldest = [5009, 5008, 5007, 5006, 5005], [9, 8, 7, 6, 5]
    for query, most, seqs in (
        ("boat", 1, newest), ("red boat", 1, newest), ("green boat", 3, oldest), ("lighthouse", 3, [1])
    ):  # fmt: skip
        with counted_statements() as sent:
            found = the_newest(query, conversation_id, limit=5).matches

        assert len(searches(sent)) <= most
        assert [match.last_seq for match in found] == seqs


def test_a_search_asks_few_questions_however_it_comes_out():
    conversation_id = analyzed(*["a red house", "a green boat"] * 700)
    reader = engine()

    queries = (("house", 6), ("red boat", 9), ("which boat is it?", 8))
    for (query, most), sort in product(queries, ("recency", "relevance")):
        with counted_statements() as sent:
            result = reader.grep(query=query, conversation_id=conversation_id, sort=sort, limit=5)
        assert len(result.matches) == 5
        # Beside what the test asks for: its transaction's savepoints, and its settings, which are put back.
        own = ("SAVEPOINT", "_setting(", "set_config", "pg_stats", "workspaces")
        assert len([statement for statement in sent if not any(each in statement for each in own)]) <= most


def test_a_search_is_planned_once_for_all_words():
    conversation_id = analyzed(*["a red boat", "a green boat"] * 600, "lighthouse keeper")
    reader = engine()

    for sort in ("recency", "relevance"):
        sent_for = {}
        for query in ("lighthouse", "keeper"):
            with counted_statements() as sent:
                reader.grep(query=query, conversation_id=conversation_id, sort=sort)
            sent_for[query] = searches(sent)

        assert sent_for["lighthouse"] == sent_for["keeper"] != []


def test_sentences_with_as_many_words_share_a_plan():
    conversation_id = analyzed(*["a red boat", "a green boat"] * 60)

    # In the second question the rarer word comes last, and has other forms.
    sent_for = []
    for query in ("Where is the red boat?", "Did the boat win?"):
        with counted_statements() as sent:
            engine().grep(query=query, conversation_id=conversation_id)
        sent_for.append(next(statement for statement in searches(sent) if "ts_rank" in statement))

    assert sent_for[0] == sent_for[1]


def test_that_nobody_used_a_tool_is_known_without_looking_at_the_messages():
    conversation_id = analyzed(*(f"an error report, number {number}" for number in range(1200)))

    before = rows_gone_through()
    result = the_newest("error report", conversation_id, tool_names=["paint"])

    assert result.matches == ()
    assert rows_gone_through() - before < 50
