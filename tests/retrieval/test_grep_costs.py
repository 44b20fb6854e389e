"""What a search asks of the database: how many questions, and how many rows are gone through for them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection

from conversations import sql
from conversations.scope import Scope
from retrieval.engine import RetrievalEngine
from retrieval.search import first_look
from retrieval.search import recency as newest
from retrieval.types import GrepResult
from tests.factories import a_conversation, a_store, a_workspace
from tests.statements import counted_statements, rows_gone_through
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def the_newest(query: str, conversation_id: int, **asked: Any) -> GrepResult:
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))
    return engine.grep(query=query, conversation_id=conversation_id, sort="recency", **asked)


def analyzed(*texts: str) -> int:
    """A conversation of these texts, of which the statistics know that autovacuum keeps."""
    conversation_id = a_conversation(*texts).conversation_id
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE messages")
    return conversation_id


def rows_for(query: str, conversation_id: int) -> int:
    before = rows_gone_through()
    assert len(the_newest(query, conversation_id, limit=5).matches) == 5
    return rows_gone_through() - before


def test_the_newest_messages_and_summaries_are_found_and_shown_by_one_question():
    conversation_id = analyzed(*["the boat", "the house"] * 600)
    a_summary_of(a_store(), conversation_id, seqs=[1198, 1199], content="About a boat.")

    with counted_statements() as sent:
        result = the_newest("boat", conversation_id)

    assert {match.kind for match in result.matches} == {"message", "summary"}
    assert sum("SAVEPOINT" in statement for statement in sent) == 2
    # The limits, imposed with the first question and put back because of the test's transaction.
    assert sum("set_config" in statement for statement in sent) == 2
    # The workspace, which the test asks for.
    assert sum('FROM "workspaces"' in statement for statement in sent) == 1
    # Beside these: which texts have the words, and what is shown of those.
    assert len(sent) == 2 + 2 + 1 + 1


@pytest.mark.parametrize("sort", ["recency", "relevance"])
def test_what_a_conversation_has_none_of_is_looked_in_only_if_nothing_else_is_asked_for(sort):
    conversation_id = a_conversation(*(f"the boat number {number}" for number in range(6))).conversation_id
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))
    found, looked_in = {}, {}

    for scope in ("all", "summaries", "files"):
        with counted_statements() as sent:
            found[scope] = len(
                engine.grep(query="boat", conversation_id=conversation_id, sort=sort, scope=scope).matches
            )
        looked_up = " ".join(" ".join(statement for statement in sent if "@@" in statement).split())
        looked_in[scope] = {
            name for name in ("messages", "summaries", "large_files") if f"FROM {name} WHERE" in looked_up
        }

    assert found == {"all": 6, "summaries": 0, "files": 0}
    assert looked_in == {"all": {"messages"}, "summaries": {"summaries"}, "files": {"large_files"}}


@pytest.mark.parametrize("query", ["error", "error report", "error report again"])
def test_the_newest_with_common_words_are_found_however_long_the_history_is(query):
    texts = [f"an error report again, number {number}" for number in range(1200)]

    short, long = (rows_for(query, analyzed(*texts[:size])) for size in (100, 1200))

    assert long < short + 10


def test_words_that_come_together_more_often_than_the_statistics_foresee_are_found_among_the_newest():
    often = [f"error report number {number}" for number in range(300)]
    conversation_id = analyzed(*(["nothing of the kind"] * 900), *often)

    assert rows_for("error report", conversation_id) < 100


def test_a_word_without_a_count_is_looked_for_among_the_newest_before_all_that_hold_it(monkeypatch):
    monkeypatch.setattr(first_look, "_UNCOUNTED", 100)
    monkeypatch.setattr(first_look, "_FEW", 1)
    texts = ["red boat", *["green house"] * 4] * 240
    conversation_id = a_conversation(*texts).conversation_id
    of_long_ago = a_conversation("lighthouse", *texts).conversation_id

    assert rows_for("boat", conversation_id) < 200
    assert [match.first_seq for match in the_newest("lighthouse", of_long_ago).matches] == [1]


def test_the_rest_is_asked_for_only_if_what_is_near_was_too_little():
    near, far = analyzed(*["a red boat"] * 700), analyzed(*["a red boat"] * 3, *["a red house", "a green boat"] * 400)
    looked_up = {}

    for conversation_id in (near, far):
        with counted_statements() as sent:
            assert len(the_newest("red boat", conversation_id, limit=3).matches) == 3
        looked_up[conversation_id] = sum("@@" in statement for statement in sent)

    assert looked_up == {near: 1, far: 2}


def boats_beside(*, last: int, summaries: range) -> int:
    """How many more rows are gone through for boats, of which the last is there, if these messages are summarized."""
    texts = ["a boat" if number % 12 == 0 and number <= last else "a house" for number in range(1, 4001)]
    gone_through = []
    for seqs in (range(0), summaries):
        conversation_id = analyzed(*texts)
        for seq in seqs:
            a_summary_of(a_store(), conversation_id, seqs=[seq], content="About a boat.")
        before = rows_gone_through()
        assert len(the_newest("boat", conversation_id, limit=20).matches) == 20
        gone_through.append(rows_gone_through() - before)
    without, beside = gone_through
    return beside - without


def test_summaries_of_long_ago_are_passed_by_for_the_newest():
    assert boats_beside(last=3990, summaries=range(1, 3000, 100)) <= 2


def test_summaries_are_looked_through_once_though_too_little_is_near():
    assert boats_beside(last=3700, summaries=(near := range(3851, 3991, 10))) <= len(near) + 2


def test_where_messages_and_summaries_together_are_enough_near_the_rest_is_not_asked_for():
    conversation_id = analyzed(
        *["a red boat"] * 3, *["a red house", "a green boat"] * 400, *["a red boat"] * 2, *["nothing"] * 3
    )
    for seq in (806, 807, 808):
        a_summary_of(a_store(), conversation_id, seqs=[seq], content="About a red boat.")

    assert [looked_up_for("red boat", conversation_id, limit=limit) for limit in (4, 5)] == [1, 2]


def test_what_the_index_gives_beside_the_answers_is_passed_by_one_after_the_other():
    conversation_id = analyzed(
        *["we read src/app/main.py"] * 2400, *["we read src/upserve/chain.py", "the chain of an upserve"] * 4
    )

    with counted_statements() as sent:
        found = the_newest("src/upserve/chain.py", conversation_id, limit=3).matches

    assert [match.first_seq for match in found] == [2407, 2405, 2403]
    assert sum("sought.row" in statement for statement in sent) == 1


def test_no_more_texts_are_read_than_are_given_but_for_the_one_that_tells_that_there_are_more(monkeypatch):
    conversation_id = analyzed(*["a red boat", "a green boat"] * 600)
    for seq in range(1181, 1200, 2):
        a_summary_of(a_store(), conversation_id, seqs=[seq, seq + 1], content="About a red boat.")
    read: list[int] = []

    def rows(*asked: Any, **how: Any) -> list[tuple[Any, ...]]:
        found = sql.rows(*asked, **how)
        read.append(len(found))
        return found

    monkeypatch.setattr(newest, "rows", rows)
    found = the_newest("red", conversation_id, limit=10).matches

    assert ({match.kind for match in found}, read) == ({"message", "summary"}, [11])


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

    # Of each more: its own row, for what is said and for what is shown, the item of the context, and its summary.
    assert gone_through[40] - gone_through[10] <= 30 * 4


def test_what_is_near_is_found_among_messages_and_summaries_by_one_question_that_is_planned_once():
    conversation_id = analyzed(*["a red boat", "a green boat"] * 600)
    a_summary_of(a_store(), conversation_id, seqs=[1, 2], content="About a red boat.")
    a_summary_of(a_store(), conversation_id, seqs=[1195, 1196], content="About a red boat.")

    with counted_statements() as sent:
        found = the_newest("red", conversation_id, limit=5).matches

    looked_up = [statement for statement in sent if "@@" in statement]
    assert [(match.kind, match.last_seq) for match in found] == [
        *[("message", seq) for seq in (1199, 1197)], ("summary", 1196), *[("message", seq) for seq in (1195, 1193)]
    ]  # fmt: skip
    assert len(looked_up) == 1
    assert "FROM summaries" in looked_up[0]
    assert "'red'" not in looked_up[0]


def test_where_some_are_near_more_are_looked_for_behind_them_before_all_that_hold_the_words():
    conversation_id = analyzed(*["a red boat", *["a red house", "a green boat"] * 4] * 400, *["nothing"] * 120)

    with counted_statements() as sent:
        found = the_newest("red boat", conversation_id, limit=20).matches

    looked_up = [" ".join(statement.split()) for statement in sent if "@@" in statement]
    assert [match.first_seq for match in found] == [1 + 9 * number for number in range(399, 379, -1)]
    assert ["near_after" in statement or "in_near" in statement for statement in looked_up] == [True, True]


def looked_up_for(query: str, conversation_id: int, **asked: Any) -> int:
    """How many questions look a query up."""
    with counted_statements() as sent:
        the_newest(query, conversation_id, **asked)
    return sum("@@" in statement for statement in sent)


def test_what_is_behind_the_nearest_is_asked_for_once_and_then_all_the_rest():
    others = ["a red house", "a green boat"]
    boats = {1: 30, 2: 4, 3: 12}
    conversation_id = analyzed(
        *["a red boat"] * boats[1], *others * 1200, *["a red boat"] * boats[2], *others * 150,
        *["a red boat"] * boats[3], *["nothing"] * 20,
    )  # fmt: skip

    assert len(the_newest("red boat", conversation_id, limit=20).matches) == 20
    assert looked_up_for("red boat", conversation_id, limit=20) == 3


def test_where_messages_of_long_ago_are_enough_the_newest_summaries_come_first_all_the_same():
    others = ["a red house", "a green boat"]
    conversation_id = analyzed(
        *others * 1450, *["a red boat"] * 30, *others * 150, *["a red boat"] * 12, *["nothing"] * 20
    )
    a_summary_of(a_store(), conversation_id, seqs=[3250], content="About a red boat.")

    assert looked_up_for("red boat", conversation_id, limit=20) == 2
    found = the_newest("red boat", conversation_id, limit=20).matches
    assert [match.last_seq for match in found] == [3250, *range(3242, 3230, -1), *range(2930, 2923, -1)]


def test_one_word_that_nothing_holds_is_looked_up_once():
    conversation_id = analyzed(*["a red boat", "a green boat"] * 600)

    assert looked_up_for("lighthouse", conversation_id) == 1


def test_of_more_summaries_than_are_given_the_newest_are():
    conversation_id = analyzed(*["a red boat", "a green boat"] * 600)
    for seq in (1, 3, 5, 7, 9):
        a_summary_of(a_store(), conversation_id, seqs=[seq, seq + 1], content="About a lighthouse.")

    assert [match.last_seq for match in the_newest("lighthouse", conversation_id, limit=2).matches] == [10, 8]


def test_words_that_nothing_holds_together_are_looked_for_in_six_questions_at_most():
    conversation_id = analyzed(*["a red house", "a green boat"] * 700)

    with counted_statements() as sent:
        result = the_newest("red boat", conversation_id, limit=5)

    assert (result.relaxed, len(result.matches)) == (True, 5)
    assert sum(any(name in statement for name in ("messages", "websearch")) for statement in sent) <= 6


@pytest.mark.parametrize("limit", range(1, 8))
def test_summaries_have_their_place_among_messages_near_and_far_on_pages_of_any_size(limit):
    conversation_id = analyzed(
        *["a red boat"] * 3, *["a red house", "a green boat"] * 400, *["a red boat"] * 2, *["nothing"] * 3
    )
    for seqs in ([4, 5], [806], [807], [808]):
        a_summary_of(a_store(), conversation_id, seqs=seqs, content="About a red boat.")

    pages = [the_newest("red boat", conversation_id, limit=limit)]
    while (cursor := pages[-1].cursor) is not None:
        pages.append(the_newest("red boat", conversation_id, limit=limit, cursor=cursor))

    found = [match.last_seq for page in pages for match in page.matches]
    assert found == [808, 807, 806, 805, 804, 5, 3, 2, 1]


def test_where_only_one_index_leads_to_the_words_the_way_is_planned_once_a_connection():
    conversation_id = analyzed(
        *["a red boat", "a green boat", "a blue boat"] * 400, "lighthouse keeper", "ferry keeper"
    )

    found = [len(the_newest(query, conversation_id).matches) for query in ("red", "blue", "lighthouse", "ferry")]

    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%@@%LIMIT%'")
        kept = {statement for (statement,) in cursor.fetchall()}
    assert found == [20, 20, 1, 1]
    assert {"CASE WHEN content_tsv" in statement for statement in kept} == {True, False}
    assert not any(f"'{word}'" in statement for statement in kept for word in ("red", "blue", "lighthous", "ferri"))


def test_messages_that_one_index_alone_leads_to_are_found_and_shown_by_one_question():
    conversation_id = analyzed(*["a red boat", "a green boat"] * 600)
    shown = {}

    for query in ("red", "red boat", "red or nobody"):
        with counted_statements() as sent:
            shown[query] = [match.snippet.text for match in the_newest(query, conversation_id, limit=3).matches]
        assert sum("FROM messages" in statement for statement in sent) == 1

    assert shown == dict.fromkeys(shown, ["a red boat"] * 3)


def test_where_only_the_index_for_words_leads_to_the_best_the_way_is_planned_once_a_connection():
    conversation_id = analyzed(
        *["a red boat", "a green boat", "a blue boat"] * 400, "lighthouse keeper", "ferry keeper"
    )
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))

    found = [len(engine.grep(query=word, conversation_id=conversation_id).matches) for word in ("lighthouse", "ferry")]

    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements WHERE statement LIKE '%ts_rank%'")
        kept = cursor.fetchall()
    assert found == [1, 1]
    assert len(kept) == 1


@pytest.mark.parametrize("sort", ["recency", "relevance"])
def test_where_the_index_for_words_leads_to_summaries_too_the_way_is_planned_once_a_connection(sort):
    conversation_id = analyzed(*["a red boat", "a green boat"] * 600, "lighthouse keeper")
    a_summary_of(a_store(), conversation_id, seqs=[1, 2], content="About a lighthouse.")
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))

    with counted_statements() as sent:
        result = engine.grep(query="lighthouse", conversation_id=conversation_id, sort=sort)

    looked_up = [statement for statement in sent if "@@" in statement]
    assert {match.kind for match in result.matches} == {"message", "summary"}
    assert len(looked_up) == 1
    assert "FROM summaries" in looked_up[0]
    assert "lighthous" not in looked_up[0]


def test_a_second_way_that_only_the_index_for_words_leads_to_is_taken_before_the_rest_is_planned():
    paths = ["see src/alpha/chain.py", "see src/beta/index.py"]
    conversation_id = analyzed(*paths * 3, *["a red boat", "a green boat"] * 600)
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))

    with counted_statements() as sent:
        result = engine.grep(query="src/alpha/chain.py src/beta/index.py", conversation_id=conversation_id)

    looked_up = [statement for statement in sent if "ts_rank" in statement]
    assert sorted(match.snippet.text for match in result.matches) == sorted(paths * 3)
    assert len(looked_up) == 2
    assert not any("chain" in statement for statement in looked_up)


def test_common_words_that_hardly_ever_come_together_are_all_found():
    texts = ["red boat"] * 3 + ["red house", "green boat"] * 400
    conversation_id = analyzed(*texts)

    result = the_newest("red boat", conversation_id)

    assert [match.first_seq for match in result.matches] == [3, 2, 1]
    assert not result.relaxed


def test_common_words_of_long_ago_are_found_behind_all_that_was_said_since():
    texts = [f"red boat {number}" for number in range(100)] + ["a green house"] * 700
    conversation_id = analyzed(*texts)

    found, cursor = [], None
    while not found or cursor is not None:
        page = the_newest("red boat", conversation_id, limit=30, cursor=cursor)
        found += [match.first_seq for match in page.matches]
        cursor = page.cursor

    assert found == list(range(100, 0, -1))


def test_texts_that_all_hold_the_word_are_ranked_by_what_was_read_with_them():
    conversation_id = a_conversation(*(f"the boat number {number}" for number in range(6))).conversation_id
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))

    with counted_statements() as one_word:
        engine.grep(query="boat", conversation_id=conversation_id)
    with counted_statements() as question:
        engine.grep(query="which boat is it?", conversation_id=conversation_id)

    # Of a question, the answer may stand beside the hits.
    assert sum("AS near(conversation_id, seq)" in statement for statement in one_word) == 0
    assert sum("AS near(conversation_id, seq)" in statement for statement in question) == 1


def test_that_nobody_used_a_tool_is_known_without_looking_at_the_messages():
    conversation_id = analyzed(*(f"an error report, number {number}" for number in range(1200)))

    before = rows_gone_through()
    result = the_newest("error report", conversation_id, tool_names=["paint"])

    assert result.matches == ()
    assert rows_gone_through() - before < 50


def test_where_the_best_messages_with_a_common_word_leave_no_place_for_summaries_none_is_looked_at():
    conversation_id = analyzed(*["a red boat", "a green boat"] * 60)
    summary = a_summary_of(a_store(), conversation_id, seqs=[1, 2], content="About a boat.")
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))

    with counted_statements() as sent:
        page = engine.grep(query="boat", conversation_id=conversation_id, limit=10)
    found = [match.id for match in page.matches]
    while page.cursor is not None:
        page = engine.grep(query="boat", conversation_id=conversation_id, limit=50, cursor=page.cursor)
        found += [match.id for match in page.matches]

    assert not any("FROM summaries" in statement for statement in sent if "@@" in statement)
    assert len(found) == len(set(found)) == 121
    assert summary.summary_id in found[10:]


def test_a_summary_that_says_a_common_word_best_is_found_among_messages_that_say_it_once():
    conversation_id = analyzed(*[f"a boat{' and more' * 500}", "a house", "a garden", "a street"] * 60)
    summary = a_summary_of(a_store(), conversation_id, seqs=[1, 2], content="A boat, beside another boat.")
    engine = RetrievalEngine.from_settings(Scope(a_workspace().pk))

    result = engine.grep(query="boat", conversation_id=conversation_id, limit=5)

    assert [match.id for match in result.matches].index(summary.summary_id) == 0
