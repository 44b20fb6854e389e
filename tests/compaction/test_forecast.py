"""The steps of a run: waited for, forecast by the planner's own rules, and carried out as planned or refused."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.planning import planner
from compaction.planning.forecast import PROMPT_TOKENS, Forecast, estimate, forecast
from compaction.planning.planner import Slot
from compaction.planning.steps import Step, leaf_and_condensed_steps
from compaction.plans.execution import PlanExecution, context_hash, item_changes, settings_in_force
from compaction.policy import SHELL_TOKENS, CompactionPolicy
from compaction.summarizing.prompts import MOST_SOURCE_TOKENS
from compaction.types import SeqRange
from conversations.types import Role, SummaryKind
from tests.compaction.slots import chat, follow, ordinals, raw, slots_strategy, summary

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
        *((number, SummaryKind.LEAF, 0) for number in (1, 2, 3)),
        (4, SummaryKind.CONDENSED, 1),
    ]
    assert [(step.first_seq, step.last_seq) for step in steps] == [(1, 4), (5, 8), (9, 12), (1, 12)]
    assert [step.from_steps for step in steps] == [(), (), (), (1, 2, 3)]


def test_what_is_stepped_over_parts_the_ranges_of_a_step():
    slots = [*chat(2), raw(3, Role.SYSTEM), *chat(10)[3:]]

    step = forecast(slots, POLICY).steps[0].step

    assert step.ranges == (SeqRange(1, 2), SeqRange(4, 5))
    assert (step.first_seq, step.last_seq, step.item_count) == (1, 5, 4)


def test_calls_and_cost_are_those_of_every_step():
    steps = forecast(chat(16), POLICY).steps

    priced = estimate(steps, calls_model=True, prices=(2.0, 10.0))

    tokens_in = 3 * 2000 + 900 + 4 * PROMPT_TOKENS
    assert (priced.calls, priced.tokens_in, priced.tokens_out) == (4, tokens_in, 3 * 200 + 450)
    assert priced.cost == round((2 * tokens_in + 10 * 1050) / 1_000_000, 6)


def test_of_a_message_that_is_longer_than_any_prompt_a_model_reads_what_a_prompt_holds():
    steps = forecast([raw(1, tokens=500_000), *chat(12)[1:]], POLICY).steps

    takes = estimate(steps[:1], calls_model=True)

    assert takes.tokens_in == MOST_SOURCE_TOKENS + PROMPT_TOKENS


@given(slots_strategy, policies)
def test_a_forecast_takes_nothing_twice_and_nothing_that_is_protected(slots: list[Slot], policy: CompactionPolicy):
    protected = planner.fresh_tail(slots, policy)

    expected = forecast(slots, policy)

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


def steps_without(place: int, slots: list[Slot]) -> list[Step]:
    """The steps where all get a summary but the one at this place."""
    places = iter(range(1, 1000))

    def make(step: Step) -> Slot | None:
        now = next(places)
        if now == place:
            return None
        return Slot(ordinal=step.chunk[0].ordinal, tokens=300, summary_id=f"sum_{now}", depth=step.depth)

    return follow(leaf_and_condensed_steps(slots, POLICY), make)


def test_each_leaf_step_knows_the_summary_before_it():
    steps = steps_without(0, [summary(1, depth=3), *chat(16)[1:]])

    previous = [step.previous and step.previous.summary_id for step in steps if step.kind is SummaryKind.LEAF]
    assert previous == ["sum_1", "sum_1", "sum_2"]


def test_a_chunk_that_no_summary_stands_for_stays_and_the_next_is_proposed():
    steps = steps_without(2, chat(24))

    leaves = [ordinals(step.chunk) for step in steps if step.kind is SummaryKind.LEAF]
    assert leaves == [[1, 2, 3, 4], [5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16], [17, 18, 19, 20]]
    assert ordinals(steps[-1].chunk) == [1, 5, 6, 7, 8, 9, 13]


def test_condensing_ends_where_no_summary_would_have_been_cheaper():
    steps = steps_without(10, chat(40))

    assert [step.kind for step in steps].count(SummaryKind.CONDENSED) == 1


def changes(planned: Forecast, now: list[Slot], *, last_seq: int = 16, policy: CompactionPolicy = POLICY) -> list[str]:
    return [f"{each['id']} {each['change']}" for each in item_changes(planned.steps, now, policy, last_seq)]


def carried_out(planned: Forecast, slots: list[Slot], policy: CompactionPolicy, **lengths: int) -> list[Step]:
    """The steps as they are made of summaries of the expected length, or of one that is given as `step_1`."""
    taken: list[Step] = []
    last_seq = max((slot.ordinal for slot in slots), default=0)
    execution = PlanExecution("plan_1", last_seq, settings_in_force(policy), tuple(planned.steps))

    def make(step: Step) -> Slot:
        taken.append(step)
        tokens = lengths.get(f"step_{len(taken)}", step.target_tokens + SHELL_TOKENS)
        return Slot(ordinal=step.chunk[0].ordinal, tokens=tokens, summary_id=f"sum_{len(taken)}", depth=step.depth)

    execution.require_unchanged(slots, policy)
    follow(execution.steps(slots, policy), make)
    assert len(taken) == len(execution.details["steps_made"])
    assert len(taken) + len(execution.details["steps_skipped"]) == len(planned.steps)
    return taken


def test_an_item_that_is_gone_replaced_or_of_another_length_is_named():
    slots = chat(16)
    planned = forecast(slots, POLICY)
    now = [slots[0], summary(2), raw(3, Role.USER, tokens=501), *slots[4:]]

    assert changes(planned, now) == ["msg_2 replaced", "msg_3 recounted", "msg_4 gone"]


def test_an_item_that_is_protected_by_now_is_named():
    slots = [raw(1, Role.USER), raw(2, calls="a"), *chat(16)[2:]]
    planned = forecast(slots, POLICY)

    assert "msg_2 protected" in changes(planned, [*slots, raw(17, Role.TOOL, calls="a")])


def test_an_item_that_belongs_together_with_what_came_later_is_named():
    slots = [*chat(14), raw(15, calls="a"), *(raw(n) for n in range(16, 30))]
    planned = forecast(slots, POLICY)
    now = [*slots, raw(30, Role.USER, calls="a"), *(raw(n, Role.USER) for n in range(31, 50))]

    named = changes(planned, now, last_seq=29)

    assert named[0] == "msg_15 belongs together with a newer message"


def test_a_condensed_step_asks_for_less_when_its_sources_came_out_short():
    slots = chat(16)
    planned = forecast(slots, POLICY)

    as_expected = carried_out(planned, slots, POLICY)
    short = carried_out(planned, slots, POLICY, step_1=200, step_2=200, step_3=150)

    assert [step.target_tokens for step in as_expected] == [200, 200, 200, 450]
    assert [step.target_tokens for step in short] == [200, 200, 200, 275]


def test_a_condensed_step_that_would_save_too_little_is_left_out():
    slots = chat(16)
    planned = forecast(slots, POLICY)

    assert len(carried_out(planned, slots, POLICY, step_1=120, step_2=120, step_3=120)) == 3


def test_a_leaf_step_is_told_of_the_summary_before_it():
    slots = [summary(1), *chat(20)[1:]]
    planned = forecast(slots, POLICY)

    leaves = carried_out(planned, slots, POLICY)[:2]

    assert [step.previous and step.previous.summary_id for step in leaves] == ["sum_1", "sum_1"]
    assert [step.previous and step.previous.ordinal for step in leaves] == [1, 2]


def test_the_hash_is_of_what_the_steps_take_and_of_the_settings():
    slots = chat(16)
    steps, settings = forecast(slots, POLICY).steps, settings_in_force(POLICY)
    longer = forecast([raw(1, Role.USER, tokens=501), *slots[1:]], POLICY).steps

    first = context_hash(steps, settings)

    assert first == context_hash(forecast(chat(16), POLICY).steps, settings)
    assert len({first, context_hash(longer, settings), context_hash(steps, {**settings, "max_depth": 2})}) == 3


@given(slots_strategy, policies)
def test_on_an_unchanged_context_a_plan_is_carried_out_to_the_letter(slots: list[Slot], policy: CompactionPolicy):
    planned = forecast(slots, policy)

    taken = carried_out(planned, slots, policy)

    assert [tuple(slot.ordinal for slot in step.chunk) for step in taken] == [each.ordinals for each in planned.steps]
    assert [step.target_tokens for step in taken] == [each.step.target_tokens for each in planned.steps]


@given(slots_strategy, slots_strategy, policies, st.data())
def test_whatever_is_appended_nothing_protected_is_taken_unnoticed(
    slots: list[Slot], more: list[Slot], policy: CompactionPolicy, data: st.DataObject
):
    planned = forecast(slots, policy)
    appended = [
        slot._replace(ordinal=len(slots) + slot.ordinal, message_id=len(slots) + slot.ordinal)
        for slot in more
        if slot.role is not None
    ]
    now = [*slots, *appended[: data.draw(st.integers(0, len(appended)))]]

    named = {each["ordinal"] for each in item_changes(planned.steps, now, policy, len(slots))}

    protected = planner.fresh_tail(now, policy)
    taken = {item.ordinal for each in planned.steps for item in each.items}
    assert {ordinal for ordinal in taken if ordinal in protected} <= named <= taken
