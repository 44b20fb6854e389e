"""Leaf summaries of so many messages each: as a setting, as an override, and never through the middle of a call."""

from __future__ import annotations

import pytest

from compaction.engine import CompactionEngine
from conversations.models import Message, Summary
from tests.compaction.hosting import a_talk
from tests.factories import a_store

pytestmark = pytest.mark.django_db


def messages_of_leaves(conversation_id: int) -> list[list[int]]:
    """The seqs that each leaf summary stands for, oldest first."""
    leaves = Summary.objects.filter(conversation_id=conversation_id, kind="leaf").order_by("first_seq")
    return [
        list(Message.objects.filter(summary_links__summary=leaf).order_by("seq").values_list("seq", flat=True))
        for leaf in leaves
    ]


def test_a_conversation_may_have_batches_of_its_own(settings):
    settings.LCM = {"leaf_batch_messages": 5}
    number, other = a_talk(28).conversation_id, a_talk(28).conversation_id
    a_store().configure_conversation(conversation_id=number, overrides={"leaf_batch_messages": 10})

    for each in (number, other):
        CompactionEngine.from_settings().compact(conversation_id=each)

    assert [len(seqs) for seqs in messages_of_leaves(number)] == [10, 10]
    assert [len(seqs) for seqs in messages_of_leaves(other)] == [5, 5, 5, 5]
