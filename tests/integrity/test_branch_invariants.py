"""What is altered past the triggers in a conversation with branches is found, and can be derived again."""

from __future__ import annotations

import pytest
from django.db import Error, connection, transaction

from compaction.hosts.branching import Branches
from compaction.rendering import context_cost_of
from conversations.content.tokens import TokenEstimator
from conversations.models import ContextItem, Conversation, HeadMove, Message
from conversations.scope import Scope
from conversations.store.derived_context import rebuild_context, recount
from tests.factories import a_conversation, a_store, a_workspace, say
from tests.integrity.breaking import breaking, checked
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def forked() -> int:
    """Ten messages, of which six are in a leaf; two more follow the fourth."""
    conversation_id = a_conversation(*(f"message {n}" for n in range(10))).conversation_id
    a_summary_of(a_store(), conversation_id, seqs=range(1, 7))
    Branches.from_settings(Scope(a_workspace().pk)).move_head(conversation_id=conversation_id, head_seq=4)
    for text in ("another 5", "another 6"):
        say(conversation_id, text)
    return conversation_id


BREAKS = {
    "a head said to be elsewhere": (
        "UPDATE conversations SET inactive = '{}' WHERE conversation_id = %s",
        {"heads_follow_their_moves", "messages_are_reachable_once"},
    ),
    "moves miscounted": ("UPDATE conversations SET moves = 0 WHERE conversation_id = %s", {"heads_follow_their_moves"}),
    "a move to another head": (
        "UPDATE head_moves SET head_seq = 5 WHERE conversation_id = %s",
        {"heads_follow_their_moves", "rows_match_their_seals", "context_is_what_lineage_says"},
    ),
    "a removed move": (
        "DELETE FROM head_moves WHERE conversation_id = %s",
        {"heads_follow_their_moves", "context_is_what_lineage_says"},
    ),
    "a message off the path in the context": (
        "INSERT INTO context_items (conversation_id, ordinal, item_type, message_id, token_count)"
        " SELECT conversation_id, seq, 'message', message_id, token_count + 4 FROM messages"
        " WHERE conversation_id = %s AND seq = 9",
        {"messages_are_reachable_once", "context_is_what_lineage_says", "counters_are_recounts"},
    ),
    "a message of the path out of the context": (
        "DELETE FROM context_items WHERE conversation_id = %s AND ordinal = 12",
        {"messages_are_reachable_once", "context_is_what_lineage_says", "counters_are_recounts"},
    ),
}


# Of the others, the moves themselves are gone.
DERIVED = {"a head said to be elsewhere", "moves miscounted", "a message off the path in the context"}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_branch_is_found_and_what_is_derived_can_be_derived_again(forked, name):
    statement, codes = BREAKS[name]
    shown = ContextItem.objects.filter(conversation_id=forked).order_by("ordinal").values_list("ordinal")
    before = list(shown)

    assert breaking(statement, forked) == 1

    assert set(checked()) == codes
    if name in DERIVED:
        rebuild_context(forked, cost_of=context_cost_of(TokenEstimator.from_settings()))
        recount(forked)
        assert checked() == {}
        assert list(shown.all()) == before


def test_the_database_refuses_moves_that_do_not_follow(forked):
    insert = "INSERT INTO head_moves (conversation_id, number, at_seq, head_seq) VALUES"
    for statement in (
        "UPDATE head_moves SET head_seq = 1 WHERE conversation_id = %s",
        "DELETE FROM head_moves WHERE conversation_id = %s",
        f"{insert} (%s, 3, 13, 1)",
        f"{insert} (%s, 2, 10, 1)",
        f"{insert} (%s, 2, 13, 13)",
    ):
        with pytest.raises(Error), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(statement, [forked])

    assert checked() == {}
    assert HeadMove.objects.filter(conversation_id=forked).count() == 1
    assert Message.objects.filter(conversation_id=forked).count() == 12
    assert Conversation.objects.get(pk=forked).head_seq == 12
