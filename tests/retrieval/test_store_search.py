"""The specification's searches of the store."""

from __future__ import annotations

import pytest

from conversations.errors import Invalid, NotFound
from tests.factories import a_conversation, a_store, a_workspace
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


def test_messages_that_hold_all_words_are_found_best_first():
    conversation = a_conversation("docker", "docker compose docker", "docker compose", "nothing")

    found = a_store().search_messages(query="docker compose", conversation_id=conversation.conversation_id)

    assert [result.seq for result in found] == [2, 3]
    assert found[0].rank > found[1].rank


def test_summaries_are_found_by_their_text():
    conversation = a_conversation("one", "two")
    summary = a_summary_of(a_store(), conversation.conversation_id, seqs=[1, 2], content="They read getSummary().")

    found = a_store().search_summaries(query="get summary")

    assert [(result.summary_id, result.first_seq, result.last_seq) for result in found] == [(summary.summary_id, 1, 2)]


def test_a_search_ends_at_the_workspace_and_at_the_limit():
    a_conversation("zebra one", "zebra two", "zebra three")
    a_conversation("zebra of theirs", workspace=a_workspace("another"))

    assert len(a_store().search_messages(query="zebra")) == 3
    assert len(a_store().search_messages(query="zebra", limit=2)) == 2


def test_a_conversation_of_somebody_else_is_not_found():
    foreign = a_conversation("zebra", workspace=a_workspace("another"))

    with pytest.raises(NotFound):
        a_store().search_messages(query="zebra", conversation_id=foreign.conversation_id)


def test_what_cannot_be_searched_for_is_refused_and_any_text_is_a_query():
    for search in (a_store().search_messages, a_store().search_summaries):
        for wrong in ({"limit": 0}, {"limit": -1}, {"limit": 10**9}, {"query": "a\x00b"}):
            with pytest.raises(Invalid):
                search(**{"query": "zebra", **wrong})
        for query in ("the", "", "'", "a & | b", "((", "-zebra"):
            assert search(query=query) == []
