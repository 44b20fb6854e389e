"""Leaf summaries of so many messages each: as a setting, as an override, and never through the middle of a call."""

from __future__ import annotations

import pytest

from compaction.engine import CompactionEngine
from compaction.types import Outcome
from conversations.models import Message, Summary
from conversations.types import NewMessage, Role
from integrity.checker import IntegrityChecker
from tests.compaction.hosting import a_talk
from tests.factories import a_conversation, a_store, a_tool_call, a_tool_result

pytestmark = pytest.mark.django_db


def messages_of_leaves(conversation_id: int) -> list[list[int]]:
    """The seqs that each leaf summary stands for, oldest first."""
    leaves = Summary.objects.filter(conversation_id=conversation_id, kind="leaf").order_by("first_seq")
    return [
        list(Message.objects.filter(summary_links__summary=leaf).order_by("seq").values_list("seq", flat=True))
        for leaf in leaves
    ]


def test_each_leaf_stands_for_as_many_messages_as_the_setting_says(settings):
    settings.LCM = {"leaf_batch_messages": 5}
    number = a_talk(28).conversation_id

    CompactionEngine.from_settings().compact(conversation_id=number)

    assert messages_of_leaves(number) == [list(range(first, first + 5)) for first in (1, 6, 11, 16)]


def test_a_conversation_may_have_batches_of_its_own(settings):
    settings.LCM = {"leaf_batch_messages": 5}
    number, other = a_talk(28).conversation_id, a_talk(28).conversation_id
    a_store().configure_conversation(conversation_id=number, overrides={"leaf_batch_messages": 10})

    for each in (number, other):
        CompactionEngine.from_settings().compact(conversation_id=each)

    assert [len(seqs) for seqs in messages_of_leaves(number)] == [10, 10]
    assert [len(seqs) for seqs in messages_of_leaves(other)] == [5, 5, 5, 5]


def test_no_batch_ends_between_a_tool_call_and_its_result(settings):
    settings.LCM = {"leaf_batch_messages": 4}
    number = a_conversation().conversation_id
    for n in range(10):
        a_store().append_messages(
            conversation_id=number,
            messages=[
                NewMessage(Role.USER, f"Please read file {n}, it is about harbour {n}. " * 12),
                a_tool_call(f"call_{n}", path=f"harbour/{n}.txt"),
                a_tool_result(f"call_{n}", f"Harbour {n} has {n + 3} boats and port {5000 + n}. " * 12),
            ],
        )

    result = CompactionEngine.from_settings().compact(conversation_id=number)

    leaves = messages_of_leaves(number)
    assert result.outcome is Outcome.COMPACTED
    assert len(leaves) >= 4
    assert all(len(seqs) <= 4 for seqs in leaves)
    # Of each three messages the second calls and the third answers.
    assert all((seq + 1 in seqs) for seqs in leaves for seq in seqs if seq % 3 == 2)
    assert IntegrityChecker.from_settings().run(conversation_id=number).is_clean
