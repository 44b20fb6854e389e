"""The section that a host that compacts by itself puts into its prompt."""

from __future__ import annotations

import pytest

from compaction.hosts.host_service import HostCompaction
from compaction.rendering import render_summary
from conversations.content.tokens import TokenEstimator
from conversations.types import NewMessage, Role, SummaryRecord
from retrieval.assembly.recall_section import HEADING
from tests.factories import a_conversation, a_store, say
from tests.summaries import a_summary_of

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def deep(module_rows: None) -> tuple[int, list[SummaryRecord], list[SummaryRecord]]:
    """A hundred messages; summaries of ten each of the first ninety, three of those to a condensed one."""
    store = a_store()
    conversation_id = a_conversation(*(f"turn {n} speaks of topic{n}" for n in range(1, 101))).conversation_id
    leaves = [a_summary_of(store, conversation_id, seqs=range(first, first + 10)) for first in range(1, 91, 10)]
    condensed = [a_summary_of(store, conversation_id, summaries=leaves[at : at + 3]) for at in (0, 3, 6)]
    return conversation_id, leaves, condensed


def test_the_newest_part_is_told_in_leaves_and_the_rest_in_the_deepest_summaries(assembler, deep):
    conversation_id, leaves, condensed = deep

    section = assembler.recall(conversation_id=conversation_id, budget=100_000)

    # The newest sixteen of the ninety begin in the eighth leaf; the seventh comes with its sisters.
    expected = [*condensed[:2], *leaves[6:]]
    assert section.summary_ids == tuple(each.summary_id for each in expected)
    places = [section.text.index(render_summary(each)) for each in expected]
    assert places == sorted(places)
    assert section.text.startswith(HEADING + "\n")
    assert section.left_out_ids == ()


@pytest.mark.parametrize(("fresh", "deepest"), [(0, 3), (1, 2), (30, 2), (31, 1), (90, 0)])
def test_how_many_of_the_newest_are_told_in_leaves_is_a_setting_of_the_conversation(assembler, deep, fresh, deepest):
    conversation_id, leaves, condensed = deep
    a_store().configure_conversation(conversation_id=conversation_id, overrides={"recall_fresh_messages": fresh})

    section = assembler.recall(conversation_id=conversation_id, budget=100_000)

    expected = [*condensed[:deepest], *leaves[3 * deepest :]]
    assert section.summary_ids == tuple(each.summary_id for each in expected)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("budget", [200, 700, 1500, 2500, 4000, 10_000])
@pytest.mark.parametrize("share", [0.05, 0.15, 1])
def test_the_section_keeps_within_its_share_and_names_what_had_no_room(assembler, deep, budget, share):
    conversation_id, leaves, condensed = deep
    whole = assembler.recall(conversation_id=conversation_id, budget=100_000)

    section = assembler.recall(conversation_id=conversation_id, budget=budget, share=share)

    assert section.tokens == TokenEstimator.from_settings().count(section.text) <= section.limit <= budget * share
    assert section.left_out_ids + section.summary_ids == whole.summary_ids
    if section.text and section.left_out_ids:
        assert section.left_out_ids[-1] in section.text


def test_more_room_never_tells_less(assembler, deep):
    conversation_id, *_ = deep

    told = [
        len(assembler.recall(conversation_id=conversation_id, budget=budget, share=1).summary_ids)
        for budget in range(50, 1500, 50)
    ]

    assert told == sorted(told)
    assert {0, 5} <= set(told)


def test_where_nothing_was_summarized_there_is_nothing_to_recall(assembler):
    section = assembler.recall(conversation_id=a_conversation("hello").conversation_id, budget=1000)

    assert (section.text, section.tokens, section.summary_ids) == ("", 0, ())


def test_a_summary_with_messages_of_its_own_is_not_opened(assembler):
    store = a_store()
    conversation_id = a_conversation(*(f"turn {n}" for n in range(1, 41))).conversation_id
    leaf = a_summary_of(store, conversation_id, seqs=range(1, 11))
    condensed = a_summary_of(store, conversation_id, seqs=[11], summaries=[leaf])

    section = assembler.recall(conversation_id=conversation_id, budget=10_000)

    assert section.summary_ids == (condensed.summary_id,)


def test_what_the_host_has_cut_and_nobody_has_summarized_is_pointed_at(assembler, deep):
    conversation_id, *_ = deep
    HostCompaction.from_settings().record_boundary(conversation_id=conversation_id, host_reference="cut", last_seq=96)

    section = assembler.recall(conversation_id=conversation_id, budget=10_000)

    assert "[Messages 91-96 are kept but not summarized yet" in section.text


def test_a_marked_section_is_not_stored_when_it_comes_back(assembler, deep):
    conversation_id, _, _ = deep
    plain = assembler.recall(conversation_id=conversation_id, budget=100_000)

    section = assembler.recall(conversation_id=conversation_id, budget=100_000, marked=True)
    sent = [NewMessage(Role.USER, f"<system-reminder>\n{section.text}\n</system-reminder>")]
    result = say(conversation_id, *sent)

    assert plain.text in section.text
    assert section.tokens <= section.limit
    assert (result.messages, result.counters.message_count) == ((), 100)
    assert result.skipped[0].is_whole
