"""A plan is resolved against the context as it is: all as planned, or what has changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compaction.planning import planner
from compaction.planning.forecast import Forecast, forecast
from compaction.planning.planner import Slot
from compaction.planning.steps import Step
from compaction.plans.execution import PlanExecution, context_hash, item_changes, setting_changes, settings_in_force
from compaction.policy import SHELL_TOKENS, CompactionPolicy
from conversations.types import Role
from tests.compaction.slots import chat, follow, raw, slots_strategy, summary
from tests.compaction.test_forecast import POLICY, policies


def changes(planned: Forecast, now: list[Slot], *, last_seq: int = 16, policy: CompactionPolicy = POLICY) -> list[str]:
    return [f"{each['id']} {each['change']}" for each in item_changes(planned.steps, now, policy, last_seq)]


def carried_out(planned: Forecast, slots: list[Slot], policy: CompactionPolicy, **lengths: int) -> list[Step]:
    """The steps as they are made of summaries of the expected length, or of one that is given as `step_1`."""
    taken: list[Step] = []
    last_seq = max((slot.ordinal for slot in slots), default=0)
    execution = PlanExecution("plan_1", last_seq, settings_in_force(policy), planned.steps)

    def make(step: Step) -> Slot:
        taken.append(step)
        tokens = lengths.get(f"step_{len(taken)}", step.target_tokens + SHELL_TOKENS)
        return Slot(ordinal=step.chunk[0].ordinal, tokens=tokens, summary_id=f"sum_{len(taken)}", depth=step.depth)

    execution.require_unchanged(slots, policy)
    follow(execution.steps(slots, policy, note=lambda details: None), make)
    assert len(taken) == len(execution.details["steps_made"])
    assert len(taken) + len(execution.details["steps_skipped"]) == len(planned.steps)
    return taken


def test_messages_that_were_appended_change_nothing():
    slots = chat(16)
    planned = forecast(slots, POLICY)

    assert changes(planned, [*slots, *chat(30)[16:]]) == []


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


def test_settings_are_told_as_they_were_and_are():
    was, now = settings_in_force(POLICY), settings_in_force(CompactionPolicy(max_passes=1))

    changed = setting_changes(was, now)

    assert changed["leaf_chunk_tokens"] == {"was": 2000, "is": 20_000}
    assert "max_passes" not in changed
    assert setting_changes(was, was) == {}


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
