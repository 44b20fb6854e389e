from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compaction.planning import planner
from compaction.planning.planner import MAX_ATOM_MESSAGES, Slot
from compaction.policy import CompactionPolicy
from compaction.types import CompactionDecision, Trigger
from conversations.types import Counters, Role
from tests.compaction.slots import chat, ordinals, raw, slots_strategy, summary

POLICY = CompactionPolicy(fresh_tail_count=4, leaf_chunk_tokens=2000)


def decide(*, tokens: int = 0, messages: int = 0, **options: bool) -> CompactionDecision:
    policy = CompactionPolicy(model_token_budget=1000, context_threshold=0.75, max_active_messages=10, **options)
    counters = Counters(message_count=messages, active_messages=messages, active_tokens=tokens)
    return policy.decide(1, counters)


def test_pressure_begins_at_the_threshold_and_not_a_token_before():
    assert not decide(tokens=749).should_compact
    assert decide(tokens=750).trigger is Trigger.TOKENS


def test_pressure_begins_with_one_message_more_than_allowed():
    assert not decide(messages=10).should_compact
    assert decide(messages=11).trigger is Trigger.MESSAGES


def test_a_decision_says_that_compaction_is_off_or_runs_only_on_request():
    off, on_request = decide(tokens=999, enabled=False), decide(tokens=999, autocompact_disabled=True)

    assert (off.should_compact, off.enabled, off.trigger) == (False, False, Trigger.TOKENS)
    assert (on_request.should_compact, on_request.autocompact_disabled) == (True, True)


@pytest.mark.parametrize(
    ("slots", "together"),
    [
        # A tool call, its results, and what stands between.
        (
            [raw(1, Role.USER), raw(2, calls="a b"), raw(3, Role.TOOL, calls="a"), raw(4, Role.USER)]
            + [raw(5, Role.TOOL, calls="b"), raw(6)],
            [[1], [2, 3, 4, 5], [6]],
        ),
        # A tool message without an id belongs to what it follows.
        ([raw(1), raw(2, Role.TOOL), raw(3, Role.TOOL), raw(4)], [[1, 2, 3], [4]]),
        # An id that is used again is that of another call.
        (
            [raw(1, calls="a"), raw(2, Role.TOOL, calls="a"), raw(3, Role.USER)]
            + [raw(4, calls="a"), raw(5, Role.TOOL, calls="a")],
            [[1, 2], [3], [4, 5]],
        ),
    ],
)
def test_what_belongs_together_is_one_atom(slots, together):
    assert [ordinals(atom) for atom in planner.atoms(slots)] == together


@pytest.mark.parametrize(
    "slots",
    [
        [raw(1, calls="a"), *(raw(n) for n in range(2, 600)), raw(600, Role.USER, calls="a")],
        [raw(n, Role.USER, calls=f"{n} {n + 1}") for n in range(1, 2000)],
    ],
    ids=["a call that is answered far away", "calls that overlap for ever"],
)
def test_no_calls_tie_a_history_together(slots):
    assert max(len(atom) for atom in planner.atoms(slots)) <= planner.MAX_ATOM_MESSAGES


def test_a_result_far_behind_its_call_still_draws_it_in_across_the_bound_of_an_atom():
    calls = {2: "a", 6: "a", 3: "b", MAX_ATOM_MESSAGES + 1: "b"}
    slots = [
        Slot(ordinal=n, tokens=1, message_id=n, role=Role.USER if n in (6, MAX_ATOM_MESSAGES + 1) else Role.ASSISTANT,
             calls=(calls[n],) if n in calls else ())
        for n in range(1, 3 * MAX_ATOM_MESSAGES)
    ]  # fmt: skip

    atoms = planner.atoms(slots)

    assert [slot.ordinal for slot in atoms[0]] == [1]
    assert [slot.ordinal for slot in atoms[1]] == list(range(2, MAX_ATOM_MESSAGES + 2))
    assert all(len(atom) == 1 for atom in atoms[2:])


@pytest.mark.parametrize(
    ("slots", "tail", "pinned"),
    [
        # To the whole tool call it begins in.
        ([*chat(6), raw(7, calls="a"), raw(8, Role.TOOL, calls="a"), raw(9), raw(10), raw(11)], range(5, 12), set()),
        # Back to the newest question nearby.
        ([*chat(4), raw(5, Role.USER), *(raw(n) for n in range(6, 12))], range(5, 12), set()),
        # A question far back is pinned, so that what followed it may go.
        ([raw(1, Role.USER), *(raw(n) for n in range(2, 40))], range(36, 40), {1}),
        # A user's message that only carries results is no question.
        ([raw(1, Role.USER), *(raw(n) for n in range(2, 39)), raw(39, Role.USER, answer=True)], range(36, 40), {1}),
    ],
)
def test_the_tail_is_extended_to_what_belongs_to_it(slots, tail, pinned):
    protected = planner.fresh_tail(slots, POLICY)

    assert (protected.tail, protected.pinned) == (set(tail), pinned)


@pytest.mark.parametrize(
    ("last_seq", "kept"), [(0, []), (1, [1]), (2, [1]), (3, [1]), (4, [1, 2, 3, 4]), (9, [1, 2, 3, 4, 5])]
)
def test_what_is_up_to_a_message_has_no_part_of_what_belongs_together(last_seq, kept):
    slots = [raw(1, Role.USER), raw(2, calls="a"), raw(3), raw(4, Role.TOOL, calls="a"), raw(5, Role.USER)]

    assert ordinals(planner.up_to(slots, last_seq)) == kept


def test_a_pinned_question_parts_the_history_so_that_it_is_read_in_order():
    slots = [*chat(8)[::2], *(raw(n) for n in range(9, 20)), raw(20, Role.USER), *(raw(n) for n in range(21, 60))]
    protected = planner.fresh_tail(slots, POLICY)

    chunks = [ordinals(chunk) for chunk in planner.leaf_chunks(slots, protected, POLICY)]

    assert protected.pinned == {20}
    assert all(chunk[-1] < 20 or chunk[0] > 20 for chunk in chunks)
    assert any(chunk[-1] == 19 for chunk in chunks)


def test_a_condensed_chunk_does_not_reach_over_a_pinned_question():
    slots = [summary(1), summary(5), raw(10, Role.USER, tokens=20), summary(11), summary(20)]
    slots += [raw(n) for n in range(30, 60)]
    protected = planner.fresh_tail(slots, POLICY)

    assert protected.pinned == {10}
    assert planner.condensed_chunk(slots, protected, POLICY) is None


def test_system_messages_are_never_compacted():
    slots = [raw(1, Role.SYSTEM), *(raw(n) for n in range(2, 6)), raw(6, Role.SYSTEM), *chat(20)[6:]]
    protected = planner.fresh_tail(slots, POLICY)

    chunks = list(planner.leaf_chunks(slots, protected, POLICY))

    assert chunks
    assert not {1, 6} & {slot.ordinal for chunk in chunks for slot in chunk}


@pytest.mark.parametrize(
    ("slots", "taken"),
    [
        # The oldest neighbours of the shallowest depth.
        ([summary(1, depth=1), *(summary(n) for n in range(10, 16)), *chat(20)[16:]], [10, 11, 12, 13]),
        # It steps over what is protected.
        ([summary(1), raw(5, Role.SYSTEM), summary(10), summary(20), summary(30), *chat(44)[40:]], [1, 10, 20, 30]),
        # Short messages before and between them go along.
        (
            [raw(1, tokens=20), summary(2), raw(5, tokens=20), *(summary(n) for n in (10, 20, 30)), *chat(44)[40:]],
            [1, 2, 5, 10, 20, 30],
        ),
    ],
)
def test_a_condensed_chunk_takes_neighbouring_summaries(slots, taken):
    chunk = planner.condensed_chunk(slots, planner.fresh_tail(slots, POLICY), POLICY)

    assert chunk is not None
    assert ordinals(chunk) == taken


def test_summaries_at_the_depth_limit_are_not_condensed_further():
    policy = CompactionPolicy(fresh_tail_count=4, max_depth=1)
    slots = [summary(n, depth=1) for n in range(1, 9)]

    assert planner.condensed_chunk(slots, planner.fresh_tail(slots, policy), policy) is None


@given(slots_strategy)
def test_atoms_hold_every_raw_message_once_and_in_order(slots: list[Slot]):
    together = [slot.ordinal for atom in planner.atoms(slots) for slot in atom]

    assert together == [slot.ordinal for slot in slots if slot.is_raw and slot.role is not Role.SYSTEM]


@given(slots_strategy, st.integers(1, 12))
def test_no_leaf_chunk_has_more_messages_than_the_bound_unless_fewer_would_be_too_short(slots: list[Slot], most: int):
    policy = CompactionPolicy(fresh_tail_count=4, leaf_batch_messages=most)
    protected = planner.fresh_tail(slots, policy)

    chunks = list(planner.leaf_chunks(slots, protected, policy))

    atom_of = {slot.ordinal: place for place, atom in enumerate(planner.atoms(slots)) for slot in atom}
    for chunk in chunks:
        before_its_last_atom = [slot for slot in chunk if atom_of[slot.ordinal] != atom_of[chunk[-1].ordinal]]
        target = planner.leaf_target(before_its_last_atom, policy)
        assert len(chunk) <= most or not planner.is_worthwhile(before_its_last_atom, target)


def test_messages_too_short_for_a_summary_by_the_batch_are_compacted_all_the_same():
    slots = [Slot(ordinal=n, tokens=15, message_id=n, role=Role.ASSISTANT) for n in range(1, 401)]
    policy = CompactionPolicy(leaf_batch_messages=8)

    chunks = list(planner.leaf_chunks(slots, planner.fresh_tail(slots, policy), policy))

    assert sum(len(chunk) for chunk in chunks) >= 380
