"""Ranges, windows and the active items of a conversation whose head was moved."""

from __future__ import annotations

import pytest

from compaction.hosts.branching import Branches
from conversations.scope import Scope
from conversations.types import NewMessage, Role
from retrieval.types import BranchChoice, MessageSpan
from tests.factories import a_conversation, a_store, a_workspace
from tests.retrieval.lineages import engine, range_pages, told
from tests.summaries import a_summary_of


def rewind(number: int, seq: int) -> None:
    Branches.from_settings(Scope(a_workspace().pk)).move_head(conversation_id=number, head_seq=seq)


def a_rewound_conversation() -> tuple[int, str, str]:
    """A head moved from 12 back to 4, which takes a summary of 1-8 out of the context, and a new message 13."""
    store = a_store()
    number = a_conversation(*(f"boat {seq} " * 20 for seq in range(1, 13))).conversation_id
    earlier, later = (a_summary_of(store, number, seqs=seqs) for seqs in (range(1, 5), range(5, 9)))
    around = a_summary_of(store, number, summaries=[earlier, later])
    rewind(number, 4)
    store.append_messages(conversation_id=number, messages=[NewMessage(Role.USER, "another boat")])
    return number, earlier.summary_id, around.summary_id


@pytest.fixture
def rewound(db: None) -> tuple[int, str, str]:
    return a_rewound_conversation()


def test_a_range_is_covered_by_the_active_path_and_counts_the_messages_off_it(rewound):
    number, earlier, _ = rewound

    found = engine().describe_range(conversation_id=number, from_seq=1, to_seq=13)

    assert [node.summary.summary_id for node in found.nodes] == [earlier]
    assert found.raw_messages == (MessageSpan(13, 13),)
    assert "8 messages" in found.note
    assert engine().describe_range(conversation_id=number, from_seq=1, to_seq=4).note is None


def test_an_opened_range_follows_the_active_path_and_counts_the_messages_off_it(rewound):
    number, earlier, _ = rewound

    opened = range_pages(number, 1, 13, include_messages=True, depth=-1)

    assert told(opened) == [earlier, 1, 2, 3, 4, 13]
    assert "8 messages" in opened[-1].note
    assert told(range_pages(number, 9, 12, include_messages=True)) == []
    assert told(range_pages(number, 9, 12, only_messages=True)) == [9, 10, 11, 12]


def test_the_pages_of_a_range_keep_their_path_while_the_head_moves(committed_db):
    number, earlier, around = a_rewound_conversation()
    first = engine().expand_range(
        conversation_id=number, from_seq=1, to_seq=13, include_messages=True, depth=-1, token_cap=100
    )

    rewind(number, 12)

    rest = range_pages(number, 1, 13, include_messages=True, depth=-1, cursor=first.cursor)
    assert list(dict.fromkeys(told([first, *rest]))) == [earlier, 1, 2, 3, 4, 13]
    assert told(range_pages(number, 1, 13, include_messages=True)) == [around, 9, 10, 11, 12]


def test_active_is_what_the_context_holds(rewound):
    number, earlier, around = rewound
    raw = a_store().list_messages(conversation_id=number)[9]

    assert [engine().describe(id=each).active for each in (earlier, around, raw.id)] == [True, False, False]
    lineage = engine().lineage(conversation_id=number)
    assert [node.summary_id for node in lineage.nodes if node.active] == [earlier]
    found = engine().grep(query="boat", conversation_id=number, branch=BranchChoice.ALL)
    covered_by = {match.first_seq: match.covered_by for match in found.matches}
    assert covered_by == {seq: earlier if seq <= 4 else None for seq in range(1, 14)}


def test_a_window_as_of_the_last_run_is_that_of_now_after_the_head_moved(committed_db):
    number, earlier, _ = a_rewound_conversation()
    made = a_summary_of(a_store(), number, seqs=[13])

    now = engine().lineage_window(conversation_id=number)
    then = engine().lineage_window(conversation_id=number, as_of_run=made.run_id)

    for window in (now, then):
        assert {each.summary_id for each in window.summaries if each.active} == {earlier, made.summary_id}
        assert window.raw == ()
