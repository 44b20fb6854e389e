"""A forecast goes by the planner's own rules, so it is pinned by what it must never say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.planning import planner
from compaction.planning.forecast import PROMPT_TOKENS, estimate, forecast
from compaction.planning.planner import Slot
from compaction.policy import SHELL_TOKENS, CompactionPolicy
from compaction.summarizing.prompts import MOST_SOURCE_TOKENS
from compaction.types import SeqRange
from conversations.types import Role, SummaryKind
from tests.compaction.slots import chat, raw, slots_strategy, summary

POLICY = CompactionPolicy(fresh_tail_count=4, leaf_chunk_tokens=2000, leaf_target_tokens=200, condense_fan_in=3)

policies = st.builds(
    CompactionPolicy,
    fresh_tail_count=st.integers(1, 12),
    leaf_chunk_tokens=st.integers(100, 8000),
    leaf_batch_messages=st.integers(0, 9),
    leaf_target_tokens=st.integers(32, 900),
    condensed_target_tokens=st.integers(32, 1200),
    condense_fan_in=st.integers(2, 5),
    max_depth=st.integers(-1, 3),
    max_passes=st.integers(1, 30),
    model_token_budget=st.integers(256, 50_000),
)


def test_messages_become_leaf_summaries_first_and_those_a_condensed_one():
    slots = chat(16)

    steps = [planned.step for planned in forecast(slots, POLICY).steps]

    assert [(step.number, step.kind, step.depth) for step in steps] == [
        (1, SummaryKind.LEAF, 0),
        (2, SummaryKind.LEAF, 0),
        (3, SummaryKind.LEAF, 0),
        (4, SummaryKind.CONDENSED, 1),
    ]
    assert [(step.first_seq, step.last_seq) for step in steps] == [(1, 4), (5, 8), (9, 12), (1, 12)]
    assert [step.from_steps for step in steps] == [(), (), (), (1, 2, 3)]


def test_a_summary_is_expected_to_cost_its_target_and_its_shell():
    expected = forecast(chat(16), POLICY)

    leaf, *_, condensed = (planned.step for planned in expected.steps)
    assert (leaf.source_tokens, leaf.target_tokens, leaf.expected_tokens) == (2000, 200, 200 + SHELL_TOKENS)
    assert (condensed.source_tokens, condensed.target_tokens) == (3 * 300, 450)
    assert expected.tokens == 4 * 500 + 450 + SHELL_TOKENS
    assert (expected.messages, expected.items) == (4, 5)


def test_what_is_stepped_over_parts_the_ranges_of_a_step():
    slots = [*chat(2), raw(3, Role.SYSTEM), *chat(10)[3:]]

    step = forecast(slots, POLICY).steps[0].step

    assert step.ranges == (SeqRange(1, 2), SeqRange(4, 5))
    assert (step.first_seq, step.last_seq, step.item_count) == (1, 5, 4)


def test_summaries_that_are_there_are_told_with_how_far_they_reach():
    slots = [summary(1), summary(11), summary(21), *chat(34)[30:]]

    step = forecast(slots, POLICY, last_seqs={1: 10, 11: 20, 21: 30}).steps[0].step

    assert step.ranges == (SeqRange(1, 30),)
    assert (step.depth, step.item_count, step.from_steps) == (1, 3, ())


def test_an_automatic_run_is_expected_to_stop_when_there_is_room_again():
    slots = chat(100)
    policy = CompactionPolicy(fresh_tail_count=4, leaf_chunk_tokens=2000, model_token_budget=50_000)

    under_pressure = forecast(slots, policy, is_automatic=True)
    asked_for = forecast(slots, policy)

    assert 0 < len(under_pressure.steps) < len(asked_for.steps)
    assert under_pressure.tokens <= 0.5 * 50_000


def test_calls_and_cost_are_those_of_every_step():
    steps = forecast(chat(16), POLICY).steps

    priced = estimate(steps, asks_a_model=True, prices=(2.0, 10.0))

    tokens_in = 3 * 2000 + 900 + 4 * PROMPT_TOKENS
    assert (priced.calls, priced.tokens_in, priced.tokens_out) == (4, tokens_in, 3 * 200 + 450)
    assert priced.cost == round((2 * tokens_in + 10 * 1050) / 1_000_000, 6)


def test_of_a_message_that_is_longer_than_any_prompt_a_model_reads_what_a_prompt_holds():
    steps = forecast([raw(1, tokens=500_000), *chat(12)[1:]], POLICY).steps

    takes = estimate(steps[:1], asks_a_model=True)

    assert takes.tokens_in == MOST_SOURCE_TOKENS + PROMPT_TOKENS


def test_without_a_price_there_is_no_cost_and_without_a_model_none_to_pay():
    steps = forecast(chat(16), POLICY).steps

    unknown = estimate(steps, asks_a_model=True)
    built_in = estimate(steps, asks_a_model=False, prices=(2.0, 10.0))

    assert unknown.cost is None
    assert (built_in.calls, built_in.tokens_in, built_in.tokens_out, built_in.cost) == (0, 0, 0, 0.0)


@given(slots_strategy, policies, st.booleans())
def test_a_forecast_takes_nothing_twice_and_nothing_that_is_protected(
    slots: list[Slot], policy: CompactionPolicy, is_automatic: bool
):
    protected = planner.fresh_tail(slots, policy)

    expected = forecast(slots, policy, is_automatic=is_automatic)

    taken = [item.ordinal for planned in expected.steps for item in planned.items]
    merged = [number for planned in expected.steps for number in planned.step.from_steps]
    assert len(taken) == len(set(taken))
    assert len(merged) == len(set(merged))
    assert not any(ordinal in protected for planned in expected.steps for ordinal in planned.ordinals)


@given(slots_strategy, policies)
def test_a_forecast_ends_within_its_bounds_and_every_step_saves(slots: list[Slot], policy: CompactionPolicy):
    expected = forecast(slots, policy)

    assert len(expected.steps) <= min(policy.max_passes, 2 * len(slots))
    assert all(each.step.expected_tokens < each.step.source_tokens for each in expected.steps)
    saved = sum(each.step.source_tokens - each.step.expected_tokens for each in expected.steps)
    assert expected.tokens == planner.sum_tokens(slots) - saved
    assert expected.items == len(slots) - sum(each.step.item_count - 1 for each in expected.steps)
