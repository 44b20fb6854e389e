"""Searches with LCM's own tools never come before what they are about."""

from __future__ import annotations

import pytest

from conversations.types import NewMessage, Role
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result, say
from tests.retrieval.lineages import engine
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db

FILLER = ["We painted the north wall.", "It looks fine.", "The lunch was late again.", "Noted."] * 4
ANSWER = "Decided: the staging replica listens on port 5433, behind pgbouncer."
PATH = "The pool is set up in deploy/pgbouncer.ini, by hand."
QUERIES = [
    "Which port did we choose for the staging replica?",
    "staging replica port",
    "replica listens on port pgbouncer staging",
]
TOOLS = ["lcm_grep", "mcp__lcm__lcm_grep", "lcm.lcm_grep"]


def searched_by(tool: str, *, times: int = 6) -> int:
    """A conversation whose agent was asked again and again, and looked it up each time."""
    conversation_id = a_conversation(*FILLER, ANSWER, PATH, *FILLER).conversation_id
    for number in range(times):
        say(
            conversation_id,
            *(
                message
                for place, query in enumerate([*QUERIES, "deploy/pgbouncer.ini"])
                for message in (
                    a_tool_call(f"c{number}_{place}", tool, query=query),
                    a_tool_result(f"c{number}_{place}", f'{{"query": "{query}", "matches": [{{"id": "msg_17"}}]}}'),
                )
            ),
            NewMessage(Role.ASSISTANT, "I have looked that up."),
        )
    return conversation_id


def found(query: str, conversation_id: int, **asked: str) -> list[str]:
    result = engine().grep(query=query, conversation_id=conversation_id, **asked)
    return [match.snippet.text for match in result.matches]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_search_finds_the_answer_and_not_the_searches_for_it(tool):
    conversation_id = searched_by(tool)

    for sort in ("relevance", "hybrid"):
        assert [found(query, conversation_id, sort=sort)[0] for query in QUERIES] == [ANSWER] * len(QUERIES)
        assert found("deploy/pgbouncer.ini", conversation_id, sort=sort)[0] == PATH


def test_what_was_searched_for_is_found_behind_what_was_said():
    assert any("matches" in text for text in found("staging replica port", searched_by("lcm_grep", times=1))[1:])


def test_searches_by_other_tools_are_found_like_anything_else():
    assert "pgbouncer.ini" in found("deploy/pgbouncer.ini", searched_by("ripgrep", times=1))[0]
    assert found("deploy/pgbouncer.ini", searched_by("ripgrep", times=1))[0] != PATH


@pytest.mark.parametrize("question", [QUERIES[0], "Where did we put deploy/pgbouncer.ini?"])
def test_a_question_that_was_asked_before_comes_behind_its_answer(question):
    conversation_id = a_conversation(*FILLER, ANSWER, PATH, *FILLER).conversation_id
    for number in range(6):
        exchange = [
            NewMessage(Role.USER, question),
            a_tool_call(f"c{number}", "mcp__lcm__lcm_grep", query=question),
            a_tool_result(f"c{number}", f"msg_17 [17] user: {ANSWER}"),
            NewMessage(Role.ASSISTANT, "As it was decided."),
        ]
        say(conversation_id, *exchange)

    texts = found(question, conversation_id)

    answer = PATH if "pgbouncer.ini" in question else ANSWER
    assert answer in texts
    assert question not in texts[: texts.index(answer)]


@pytest.mark.parametrize("ending", ["Also named: {}", "Expand for details about: {} (3 of 9 messages)."])
@pytest.mark.parametrize("query", ["pgbouncer replica staging", "Where did we put pgbouncer for the staging replica?"])
def test_a_list_of_words_at_the_end_of_a_summary_comes_behind_what_was_said(ending, query):
    conversation_id = a_conversation(*FILLER, ANSWER, *FILLER).conversation_id
    text = "1-4 user: We painted the north wall.\n" + ending.format("pgbouncer, staging, replica, ports, put")
    a_summary_of(a_store(), conversation_id, seqs=range(1, 5), content=text)

    texts = found(query, conversation_id)

    assert texts[0] == ANSWER
    assert any("north wall" in each for each in texts)
    assert any("north wall" in each for each in found(query, conversation_id, scope="summaries"))
