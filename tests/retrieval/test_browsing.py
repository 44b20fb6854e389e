"""Looking through the conversations of a workspace: what there is, what fills each, which are full."""

from __future__ import annotations

import pytest

from compaction.engine import CompactionEngine
from conversations.types import NewMessage, Role
from tests.factories import a_conversation, say
from tests.retrieval.lineages import engine

pytestmark = pytest.mark.django_db


def test_each_says_what_its_context_is_filled_with():
    texts = [f"Turn {n}: " + "many words " * 40 for n in range(60)]
    conversation_id = a_conversation(*texts).conversation_id
    say(conversation_id, NewMessage(Role.SYSTEM, "Be brief."))
    CompactionEngine.from_settings().compact(conversation_id=conversation_id)

    (found,) = engine().browse().conversations

    counters = found.conversation.counters
    assert found.summaries >= 1
    assert found.summary_tokens > 0 and found.system_tokens > 0 and found.raw_tokens > 0
    assert found.system_tokens + found.summary_tokens + found.raw_tokens == counters.active_tokens
    assert not found.is_under_pressure
    assert counters.active_tokens < found.threshold_tokens < found.budget


def test_one_that_is_full_is_under_pressure():
    a_conversation(*["many words " * 40] * 20, overrides={"model_token_budget": 2_000})

    assert engine().browse().conversations[0].is_under_pressure


@pytest.mark.parametrize(
    ("sort", "expected"),
    [
        ("updated", ["c", "b", "a"]),
        ("messages", ["b", "a", "c"]),
        ("active_tokens", ["c", "b", "a"]),
        ("title", ["a", "b", "c"]),
    ],
)
def test_they_come_in_the_order_asked_for(sort, expected):
    a_conversation("one", "two", title="a")
    a_conversation("one", "two", "three", title="b")
    a_conversation("many words " * 100, title="c")

    assert [each.conversation.title for each in engine().browse(sort=sort).conversations] == expected


def test_a_piece_of_a_title_or_a_session_finds_them():
    a_conversation("one", title="Fix the Parser", session_id="x-1")
    a_conversation("one", session_id="parser-2")
    a_conversation("one", title="100%", session_id="x-3")

    assert {each.conversation.session_id for each in engine().browse(query="PARSER").conversations} == {
        "x-1",
        "parser-2",
    }
    assert [each.conversation.session_id for each in engine().browse(query="%").conversations] == ["x-3"]
    assert engine().browse(query="\x00").total == 0


def test_pages_tell_how_many_there_are():
    for _ in range(5):
        a_conversation("one")

    first, last = engine().browse(limit=2), engine().browse(limit=2, page=3)

    assert (len(first.conversations), first.total) == (2, 5)
    assert len(last.conversations) == 1
    assert engine().browse(limit=2, page=4).conversations == ()


def test_it_costs_the_same_number_of_statements_whatever_the_number(django_assert_num_queries):
    reader = engine()
    for size in (1, 5):
        for _ in range(size):
            a_conversation("one", project="harbour")
        with django_assert_num_queries(4):
            reader.browse()
